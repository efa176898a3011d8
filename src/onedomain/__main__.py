"""What the installed command calls, too: Ctrl-C and SIGTERM are taken care of before anything else is imported."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> NoReturn:
    for number in SIGNALS:
        signal.signal(number, _stop)
    try:
        from onedomain.cli import main as command

        command()
    except KeyboardInterrupt as stop:
        _end(*stop.args)
    finally:
        for number in SIGNALS:  # all is done, and all is said
            signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    """An exception inside an import may be lost or become another one: then end at once, for nothing is lost by it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end(number)
        frame = frame.f_back
    raise KeyboardInterrupt(number)


def _end(number: int) -> NoReturn:
    with suppress(OSError):  # nobody listens
        os.write(2, b"onedomain: stopped\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
