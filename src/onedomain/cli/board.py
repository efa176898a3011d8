"""One live display of many runs: bars in a terminal, plain lines in a log file. Always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from onedomain.data.progress import bars, duration, say
from onedomain.errors import one_line
from onedomain.runs.job import Ended, RunProgress
from onedomain.runs.sweep import Board

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def board(label: str, runs: int) -> Iterator[Board]:
    """A display of so many runs."""
    with bars() if sys.stderr.isatty() else nullcontext() as display:
        yield _Display(label, runs, display)


class _Display:
    """A line when a run begins or ends, and every 30 s one of all that go.

    In a terminal a bar of each run that goes and one of all, with lines of those that ended above them.
    """

    def __init__(self, label: str, runs: int, bars: Progress | None) -> None:
        self.label, self.runs, self.ended_runs, self.bars = label, runs, 0, bars
        self.last, self.told_to_stop = time.monotonic(), False
        self.tasks: dict[str, TaskID] = {}
        self.all = bars.add_task(label, total=1.0, text="") if bars else None

    def begun(self, name: str) -> None:
        if self.bars:
            self.tasks[name] = self.bars.add_task(f"  {name}", total=None, text="starting")
        else:
            say(f"begin  {name}")

    def ended(self, run: Ended) -> None:
        self.ended_runs += 1
        if self.bars:
            self.bars.remove_task(self.tasks.pop(run.name))
        failed = f"failed {run.name}: {run.error} (log: {run.log})"
        done = f"{'ended early' if run.early else 'done  '} {run.name} in {duration(run.seconds)}"
        self._say(failed if run.error else "  ".join(filter(None, [done, run.note])))

    def show(self, running: Sequence[RunProgress], share: float, seconds_left: float) -> None:
        counts = f"{self.ended_runs}/{self.runs} runs  {duration(seconds_left)} left"
        if self.bars and self.all is not None:
            self.bars.update(self.all, completed=share, text=counts)
            for run in running:
                self.bars.update(self.tasks[run.name], completed=run.done, total=run.total or None, text=run.text)
        elif running and time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            say(f"{self.label}  {counts}  {'; '.join(f'{run.name}: {run.text}' for run in running)}")

    def stopping(self) -> None:
        if not self.told_to_stop:
            self._say(f"{self.label}: the runs save and stop")
        self.told_to_stop = True

    def _say(self, text: str) -> None:
        self.bars.console.print(one_line(text)) if self.bars else say(text)
