"""A grid of runs on this machine: one process per run, so many at a time, watched through their progress lines."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from onedomain.data.files import make_folder, open_own, os_errors_are_user_errors
from onedomain.data.processes import stop_requests
from onedomain.data.progress import FORM

SECONDS_BETWEEN_LOOKS = 0.2
MAIN_PART = 0.95  # share of a job's time that what it does first is taken for


@dataclass(frozen=True)
class Job:
    """A run to make: a command, where its output goes, and how many seconds it is expected to take."""

    name: str
    command: tuple[str, ...]
    log: Path
    seconds: float


@dataclass(frozen=True)
class Ended:
    """How a run ended: an `error` of one line, empty if it went well."""

    name: str
    log: Path
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Grid:
    """What has ended, in that order, and whether the others were stopped on request."""

    ended: list[Ended]
    stopped: int  # what to exit with if they were; 0 if not

    @property
    def failed(self) -> list[Ended]:
        return [outcome for outcome in self.ended if outcome.error]


@dataclass(frozen=True)
class RunProgress:
    """What a run is doing, how much of it is done, and how fast, or what else it is at meanwhile."""

    name: str
    what: str
    done: int = 0
    total: int = 0
    pace: str = ""

    @property
    def text(self) -> str:
        return f"{self.what.split()[0]} {self.done}/{self.total}, {self.pace}" if self.total else self.what


class Board(Protocol):
    """What is told of a grid of runs while it goes."""

    def begun(self, name: str) -> None: ...

    def ended(self, run: Ended) -> None: ...

    def show(self, running: Sequence[RunProgress], share: float, seconds_left: float) -> None: ...

    def stopping(self) -> None: ...


def run_jobs(jobs: Sequence[Job], parallel: int, board: Board, keep_open: Sequence[int] = ()) -> Grid:
    """Run all jobs; one that fails does not stop the others.

    Ctrl-C or SIGTERM asks the running ones to save and end, and begins no others; a second Ctrl-C kills them.
    `keep_open` are file descriptors that the processes inherit.
    """
    waiting, running, ended = list(jobs), list[_Child](), list[Ended]()
    expected = taken = 60.0  # as if a minute had gone as expected: the first look is no surprise
    with stop_requests() as stop:
        try:
            while running or (waiting and not stop.is_set()):
                while waiting and len(running) < parallel and not stop.is_set():
                    running.append(_Child(waiting.pop(0), keep_open))
                    board.begun(running[-1].job.name)
                if stop.is_set():
                    board.stopping()
                    for child in running:
                        child.ask_to_end()
                for child in [each for each in running if each.ended]:
                    running.remove(child)
                    outcome = child.outcome()
                    if stop.is_set() and outcome.error:
                        continue  # it was asked to end before its time
                    ended.append(outcome)
                    expected += child.job.seconds
                    taken += outcome.seconds
                    board.ended(outcome)
                left = [(1 - child.share) * child.job.seconds for child in running]
                to_do = sum(left) + sum(job.seconds for job in waiting)
                done = sum(child.job.seconds for child in running) - sum(left)
                pace = (taken + sum(time.monotonic() - child.begun for child in running)) / (expected + done)
                share = 1 - to_do / max(sum(job.seconds for job in jobs), 1e-9)
                board.show([child.progress for child in running], share, pace * max([*left, to_do / parallel]))
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for child in running:
                child.process.kill()
                child.outcome()
    return Grid(ended, stopped=stop.exit_code if len(ended) < len(jobs) else 0)


class _Child:
    """A running process: what it says of its progress is kept, everything else it says goes to its log."""

    def __init__(self, job: Job, keep_open: Sequence[int]) -> None:
        self.job, self.begun = job, time.monotonic()
        self.asked = False
        self.progress = RunProgress(job.name, "starting")
        self.first: RunProgress | None = None  # what it did first, and how much of that was done before
        self.last_line = ""
        make_folder(job.log.parent)
        with os_errors_are_user_errors(job.log):
            self.log = open_own(job.log, "a", buffering=1)
            self.log.write(f"$ {shlex.join(job.command)}\n")
        # A session of its own: Ctrl-C in a terminal reaches us alone, and our request is the only one that it gets.
        self.process = subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, FORM: "json"},
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def share(self) -> float:
        """How much of the job is done: what it does first, such as training, is most of it."""
        first, now = self.first, self.progress
        if first is None:
            return 0.0
        if now.what != first.what:
            return MAIN_PART + (1 - MAIN_PART) * now.done / max(1, now.total)
        return MAIN_PART * (now.done - first.done) / max(1, now.total - first.done)

    def ask_to_end(self) -> None:
        if not (self.asked or self.ended):
            self.process.terminate()
        self.asked = True

    def outcome(self) -> Ended:
        code = self.process.wait()
        self.reader.join()
        with suppress(OSError):
            self.log.close()
        error = ""
        if code < 0:
            error = f"killed by {signal.Signals(-code).name}"
            error += " (by the system, if memory ran out)" if -code == signal.SIGKILL else ""
        elif code:
            error = self.last_line.removeprefix("onedomain: ") or f"ended with exit code {code}"
        return Ended(self.job.name, self.job.log, time.monotonic() - self.begun, error)

    def _read(self) -> None:
        for line in self.process.stderr or ():
            if line.startswith('{"progress"'):
                told = json.loads(line)
                pace = told["note"] or f"{told['rate']:.1f} {told['unit']}/s"
                self.progress = RunProgress(self.job.name, told["progress"], told["done"], told["total"], pace)
                self.first = self.first or self.progress
            else:
                self.last_line = line.strip() or self.last_line
                with suppress(OSError):  # a full disk: what the process says must be taken, or it would wait
                    self.log.write(line)
