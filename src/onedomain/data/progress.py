"""Progress of long work: a live bar in a terminal, plain lines in a log file. Always on standard error.

With ONEDOMAIN_PROGRESS=json it is JSON lines instead, for a program that watches this one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from onedomain.errors import one_line


class Update(Protocol):
    """Tell how much is done, values to show beside it, and what is being done meanwhile."""

    def __call__(self, done: int, values: Mapping[str, float], note: str = "") -> None: ...


_SHORTEST, _LONGEST = 5.0, 30.0  # seconds between two plain lines
_BETWEEN_JSON = 1.0  # seconds between two JSON lines
FORM = "ONEDOMAIN_PROGRESS"


@contextmanager
def progress(label: str, total: int, *, start: int = 0, shown: bool = True, unit: str = "steps") -> Iterator[Update]:
    """Yield a function that takes how much is done and the values to show beside it."""
    label = one_line(label)
    if not shown:
        yield lambda done, values, note="": None
    elif os.environ.get(FORM) == "json":
        yield _json_lines(label, total, start, unit)
    elif sys.stderr.isatty():
        with _bar(label, total, start, unit) as update:
            yield update
    else:
        yield _lines(label, total, start, unit)


@contextmanager
def _bar(label: str, total: int, start: int, unit: str) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[values]}", markup=False),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(compact=True),
    )
    clock = _Clock(start)
    with Progress(*columns, console=Console(stderr=True), expand=True) as bars:
        task = bars.add_task(label, total=total, completed=start, values="")

        def update(done: int, values: Mapping[str, float], note: str = "") -> None:
            rate = clock.rate(done, bool(note))
            bars.update(task, completed=done, values=f"{_text(values)}  {note or f'{rate:.1f} {unit}/s'}")

        yield update


class _Clock:
    """Steps per second, without the time of other work between steps."""

    def __init__(self, start: int) -> None:
        self.start, self.spent, self.last = start, 0.0, time.monotonic()

    def rate(self, done: int, other_work: bool) -> float:
        now = time.monotonic()
        self.spent += 0.0 if other_work else now - self.last
        self.last = now
        return (done - self.start) / max(self.spent, 1e-9)


def _lines(label: str, total: int, start: int, unit: str) -> Update:
    """One line per tenth of the work, but never more often than every 5 s or less often than every 30 s."""
    clock, last_time, last_done = _Clock(start), time.monotonic(), start

    def update(done: int, values: Mapping[str, float], note: str = "") -> None:
        nonlocal last_time, last_done
        now, rate = time.monotonic(), clock.rate(done, bool(note))
        waited, tenth = now - last_time, done - last_done >= total / 10
        if not (done == total or waited >= _LONGEST or (tenth and waited >= _SHORTEST)):
            return
        left = (total - done) / rate if rate else 0.0
        pace = [note] if note else [f"{rate:.1f} {unit}/s", f"{duration(left)} left"]
        say("  ".join(part for part in (label, f"{done}/{total}", _text(values), *pace) if part))
        last_done, last_time = done, now

    return update


def _json_lines(label: str, total: int, start: int, unit: str) -> Update:
    """One line per second: {"progress": label, "done", "total", "unit", "rate", "note"}."""
    clock, last = _Clock(start), float("-inf")

    def update(done: int, values: Mapping[str, float], note: str = "") -> None:
        nonlocal last
        now, rate = time.monotonic(), clock.rate(done, bool(note))
        if done < total and now - last < _BETWEEN_JSON:
            return
        last = now
        told = {"progress": label, "total": total, "unit": unit, "done": done, "rate": round(rate, 3), "note": note}
        print(json.dumps(told), file=sys.stderr, flush=True)

    return update


@contextmanager
def work_in_parts(label: str) -> Iterator[Callable[[str, float], None]]:
    """Yield a function to call with the part that is being done, and how much of it is, from 0 to 1."""
    label = one_line(label)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        description = TextColumn("{task.description}", style="bold", markup=False)
        columns = description, BarColumn(), TextColumn("{task.percentage:>3.0f}%")
        with Progress(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task(label, total=1.0)
            yield lambda part, fraction: bars.update(task, description=f"{label}: {one_line(part)}", completed=fraction)
        return
    told: set[str] = set()

    def tell(part: str, fraction: float) -> None:
        if part not in told:
            say(f"{label}: {part}")
            told.add(part)

    yield tell


def _text(values: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())


def duration(seconds: float) -> str:
    """
    >>> duration(61), duration(3661)
    ('1:01', '1:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def say(text: str) -> None:
    """A remark on standard error, so that the result can be piped."""
    print(one_line(text), file=sys.stderr, flush=True)
