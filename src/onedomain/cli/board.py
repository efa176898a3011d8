"""One live display of many runs: bars in a terminal, plain lines in a log file. Always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onedomain.data.progress import bars, duration, say
from onedomain.errors import one_line
from onedomain.runs.sweep import Board, Ended, RunProgress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def board(label: str, runs: int) -> Iterator[Board]:
    """A display of so many runs."""
    if not sys.stderr.isatty():
        yield _Lines(label, runs)
        return
    with bars() as display:
        yield _Bars(display, label, runs)


class _Lines:
    """A line when a run begins or ends, and every 30 s one of all that go."""

    def __init__(self, label: str, runs: int) -> None:
        self.label, self.runs, self.ended_runs = label, runs, 0
        self.last, self.told_to_stop = time.monotonic(), False

    def begun(self, name: str) -> None:
        self._say(f"begin  {name}")

    def ended(self, run: Ended) -> None:
        self.ended_runs += 1
        failed = f"failed {run.name}: {run.error} (log: {run.log})"
        self._say(failed if run.error else f"done   {run.name} in {duration(run.seconds)}")

    def show(self, running: Sequence[RunProgress], share: float, seconds_left: float) -> None:
        now = time.monotonic()
        if not running or now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        each = "; ".join(f"{run.name}: {run.text}" for run in running)
        self._say(f"{self.label}  {self._counts(seconds_left)}  {each}")

    def stopping(self) -> None:
        if not self.told_to_stop:
            self._say(f"{self.label}: the runs save and stop")
        self.told_to_stop = True

    def _counts(self, seconds_left: float) -> str:
        return f"{self.ended_runs}/{self.runs} runs  {duration(seconds_left)} left"

    def _say(self, text: str) -> None:
        say(text)


class _Bars(_Lines):
    """A bar of each run and one of all; lines of those that ended stay above them."""

    def __init__(self, bars: Progress, label: str, runs: int) -> None:
        super().__init__(label, runs)
        self.bars, self.all = bars, bars.add_task(label, total=1.0, text="")
        self.tasks: dict[str, TaskID] = {}

    def begun(self, name: str) -> None:
        self.tasks[name] = self.bars.add_task(f"  {name}", total=None, text="starting")

    def ended(self, run: Ended) -> None:
        self.bars.remove_task(self.tasks.pop(run.name))
        super().ended(run)

    def show(self, running: Sequence[RunProgress], share: float, seconds_left: float) -> None:
        self.bars.update(self.all, completed=share, text=self._counts(seconds_left))
        for run in running:
            self.bars.update(self.tasks[run.name], completed=run.done, total=run.total or None, text=run.text)

    def _say(self, text: str) -> None:
        self.bars.console.print(one_line(text))
