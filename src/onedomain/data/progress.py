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
from typing import TYPE_CHECKING, Protocol

from onedomain.errors import one_line

if TYPE_CHECKING:
    from rich.progress import Progress


class Update(Protocol):
    """Tell how much is done, values to show beside it, what is being done meanwhile, and the seconds that are left."""

    def __call__(self, done: int, values: Mapping[str, float], note: str = "", left: float | None = None) -> None: ...


_SHORTEST, _LONGEST = 5.0, 30.0  # seconds between two plain lines
_BETWEEN_JSON = 1.0  # seconds between two JSON lines
FORM = "ONEDOMAIN_PROGRESS"
_silent = False


def be_silent() -> None:
    """Say nothing from now on: of several processes that work together one is enough."""
    global _silent
    _silent = True


@contextmanager
def progress(label: str, total: int, *, start: int = 0, shown: bool = True, unit: str = "steps") -> Iterator[Update]:
    """Yield a function that takes how much is done and the values to show beside it."""
    label = one_line(label)
    if not shown or _silent:
        yield lambda done, values, note="", left=None: None
    elif os.environ.get(FORM) == "json":
        yield _JsonLines(label, total, start, unit)
    elif sys.stderr.isatty():
        with bars() as display:
            yield _Bar(display, label, total, start, unit)
    else:
        yield _Lines(label, total, start, unit)


@contextmanager
def bars() -> Iterator[Progress]:
    """Bars in a terminal, each with what is done before it and the field `text` behind it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    described = TextColumn("{task.description}", style="bold", markup=False)
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    columns = described, BarColumn(bar_width=None), TextColumn("{task.fields[text]}", markup=False)
    with Progress(*columns, console=console, expand=True) as display:
        yield display


class _Lines:
    """One line per tenth of the work, but never more often than every 5 s or less often than every 30 s."""

    def __init__(self, label: str, total: int, start: int, unit: str) -> None:
        self.label, self.total, self.start, self.unit = label, total, start, unit
        self.spent, self.last = 0.0, time.monotonic()
        self.told_at, self.told_done = self.last, start
        self.left: float | None = None

    def __call__(self, done: int, values: Mapping[str, float], note: str = "", left: float | None = None) -> None:
        now = time.monotonic()
        self.spent += 0.0 if note else now - self.last  # without the time of other work between steps
        self.last, self.left = now, left
        self.tell(done, (done - self.start) / max(self.spent, 1e-9), values, note)

    def tell(self, done: int, rate: float, values: Mapping[str, float], note: str) -> None:
        waited, tenth = self.last - self.told_at, done - self.told_done >= self.total / 10
        if done == self.total or waited >= _LONGEST or (tenth and waited >= _SHORTEST):
            say(f"{self.label}  {self.text(done, rate, values, note)}")
            self.told_at, self.told_done = self.last, done

    def text(self, done: int, rate: float, values: Mapping[str, float], note: str) -> str:
        by_rate = (self.total - done) / rate if rate else 0.0
        left = [f"{duration(by_rate if self.left is None else self.left)} left"]
        pace = [note, *left[: self.left is not None]] if note else [speed(rate, self.unit), *left]
        return "  ".join([f"{done}/{self.total}", *(f"{name} {value:.4g}" for name, value in values.items()), *pace])


class _Bar(_Lines):
    def __init__(self, display: Progress, label: str, total: int, start: int, unit: str) -> None:
        super().__init__(label, total, start, unit)
        self.display, self.task = display, display.add_task(label, total=total, completed=start, text="")

    def tell(self, done: int, rate: float, values: Mapping[str, float], note: str) -> None:
        self.display.update(self.task, completed=done, text=self.text(done, rate, values, note))


class _JsonLines(_Lines):
    """One line per second: {"progress": label, "done", "total", "unit", "rate", "note"}."""

    def __init__(self, label: str, total: int, start: int, unit: str) -> None:
        super().__init__(label, total, start, unit)
        self.told_at = float("-inf")

    def tell(self, done: int, rate: float, values: Mapping[str, float], note: str) -> None:
        if done == self.total or self.last - self.told_at >= _BETWEEN_JSON:
            self.told_at = self.last
            line = {"progress": self.label, "total": self.total, "unit": self.unit, "done": done}
            print(json.dumps({**line, "rate": round(rate, 3), "note": note}), file=sys.stderr, flush=True)


def tell_score(done: int, total: int, score: float) -> None:
    """How good the run is so far: a remark or, for a program that watches this one, {"score", "done"}."""
    if os.environ.get(FORM) == "json":
        print(json.dumps({"score": score, "done": done}), file=sys.stderr, flush=True)
    else:
        say(f"score after {done:,} of {total:,} steps: {score:.2%}")


@contextmanager
def work_in_parts(label: str) -> Iterator[Callable[[str, float], None]]:
    """Yield a function to call with the part that is being done, and how much of it is, from 0 to 1."""
    label = one_line(label)
    if sys.stderr.isatty() and not _silent:
        with bars() as display:
            task = display.add_task(label, total=1.0, text="")
            yield lambda part, done: display.update(task, completed=done, text=f"{one_line(part)}  {done:.0%}")
        return
    told: set[str] = set()

    def tell(part: str, fraction: float) -> None:
        if part not in told:
            say(f"{label}: {part}")
            told.add(part)

    yield tell


def speed(rate: float, unit: str) -> str:
    """
    >>> speed(3.14, "steps"), speed(0.04, "steps")
    ('3.1 steps/s', '25.0 s/step')
    """
    return f"{rate:.1f} {unit}/s" if rate >= 0.5 or not rate else f"{1 / rate:.1f} s/{unit.removesuffix('s')}"


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
    if not _silent:
        print(one_line(text), file=sys.stderr, flush=True)
