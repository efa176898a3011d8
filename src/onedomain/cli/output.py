"""What leaves the program: streams that take any text, one JSON document, and one line for what went wrong."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn

from onedomain.data.processes import end_when_unwatched, is_another
from onedomain.data.progress import FORM, say
from onedomain.errors import one_line

SECONDS_FOR_THE_FIRST = 3.0


def prepare() -> None:
    """Let both streams take every text: a name, a terminal or a closed stream must not end a command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the start
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open until the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get(FORM) == "json":
        end_when_unwatched()
    # Pillow and libraries like it warn of what they mend; other warnings are one line, without the code's place.
    warnings.filterwarnings("ignore", module="PIL")
    warnings.showwarning = lambda message, *_, **__: say(f"note: {message}")


def tell(text: str) -> None:
    """One line of the result, on standard output."""
    print(one_line(text))


def print_json(document: Any) -> None:
    """JSON has no NaN: a number that there is not is null. All of it is ASCII, which any stream can take."""
    print(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def flush() -> None:
    """Write what is still held back: an error is told here, and not after the end."""
    sys.stdout.flush()
    sys.stderr.flush()


def end(message: str, code: int) -> NoReturn:
    if is_another():  # what went wrong in all processes the first one tells, and then torchrun ends the others
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(SECONDS_FOR_THE_FIRST)
    try:
        print(f"onedomain: {one_line(message)}", file=sys.stderr)
        flush()
    except OSError:  # nobody listens
        code = code or 1
    leave(code)


def leave(code: int) -> NoReturn:
    """End without another try to write to a stream that is closed or full."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
    sys.exit(code)
