"""A grid of runs: one process per run, on this machine or where Ray places it, watched through its progress lines."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from onedomain.data.files import make_folder, open_own, os_errors_are_user_errors
from onedomain.data.processes import stop_requests
from onedomain.data.progress import FORM, speed

SECONDS_BETWEEN_LOOKS = 0.2
MAIN_PART = 0.95  # share of a job's time that what it does first is taken for


@dataclass(frozen=True)
class Job:
    """A run to make: a command, where its output goes, and how many seconds it is expected to take.

    Begun again after a kill, the same command goes on. `folder` is what it writes, `needs` are folders that it reads:
    where storage is not shared they are sent along, and `folder` is brought back.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    seconds: float
    folder: Path | None = None
    needs: tuple[Path, ...] = ()


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


class Place(Protocol):
    """Where jobs run, if not in processes of this one."""

    def begin(self, job: Job) -> Child: ...

    def look(self) -> None:
        """Take in what the jobs said since the last look."""


def run_jobs(
    jobs: Sequence[Job], parallel: int, board: Board, keep_open: Sequence[int] = (), place: Place | None = None
) -> Grid:
    """Run all jobs, at most so many handed out at a time; one that fails does not stop the others.

    Ctrl-C or SIGTERM asks the running ones to save and end, and begins no others; a second Ctrl-C kills them.
    `keep_open` are file descriptors that processes on this machine inherit.
    """
    waiting, running, told, ended = list(jobs), list[Child](), set[str](), list[Ended]()
    expected = taken = 60.0  # as if a minute had gone as expected: the first look is no surprise
    with stop_requests() as stop:
        try:
            while running or (waiting and not stop.is_set()):
                while waiting and len(running) < parallel and not stop.is_set():
                    job = waiting.pop(0)
                    running.append(place.begin(job) if place else _Process(job, keep_open))
                if place:
                    place.look()
                over = [child for child in running if child.ended]
                for child in running:  # elsewhere a job may wait for its turn
                    if child.job.name not in told and (child.begun is not None or child in over):
                        told.add(child.job.name)
                        board.begun(child.job.name)
                at_once = max(1, sum(child.begun is not None for child in running))
                if stop.is_set():
                    board.stopping()
                    for child in running:
                        child.ask_to_end()
                for child in over:
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
                pace = (taken + sum(child.seconds for child in running)) / (expected + done)
                share = 1 - to_do / max(sum(job.seconds for job in jobs), 1e-9)
                shown = [child.progress for child in running if child.begun is not None]
                board.show(shown, share, pace * max([*left, to_do / at_once]))
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for child in running:
                child.kill()
    return Grid(ended, stopped=stop.exit_code if len(ended) < len(jobs) else 0)


def start_process(
    command: Sequence[str], output: IO[str], *, cwd: Path | None = None, keep_open: Sequence[int] = (), **variables: str
) -> subprocess.Popen[str]:
    """A job's process: what it prints goes to `output`, what it says of itself is read from its standard error."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=cwd,
        env={**os.environ, **variables, FORM: "json"},
        # A session of its own: Ctrl-C in a terminal reaches us alone, and our request is the only one that it gets.
        start_new_session=True,
        pass_fds=tuple(keep_open),
    )


class Child(ABC):
    """A job that was handed out: what it says of its progress is kept, everything else goes to its log."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.begun: float | None = None
        self.asked = False
        self.progress = RunProgress(job.name, "starting")
        self.first: RunProgress | None = None  # what it did first, and how much of that was done before
        self.last_line = ""
        make_folder(job.log.parent)
        with os_errors_are_user_errors(job.log):
            self.log = open_own(job.log, "a", buffering=1)

    @property
    @abstractmethod
    def ended(self) -> bool: ...

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def _ask_to_end(self) -> None: ...

    @abstractmethod
    def _result(self) -> tuple[int, str]:
        """The exit code of what has ended; an error, if there is another."""

    def begins(self, where: str = "") -> None:
        """Its process starts; not for the first time if that was lost with its machine."""
        with os_errors_are_user_errors(self.job.log):
            self.log.write(f"$ {shlex.join(self.job.command)}{where}\n")
        if self.begun is not None:
            self.progress, self.first = RunProgress(self.job.name, "starting again"), None
        self.begun = self.begun or time.monotonic()

    def said(self, line: str) -> None:
        if line.startswith('{"progress"') and line.endswith("}\n"):  # whole: a kill may have cut it
            told = json.loads(line)
            pace = told["note"] or speed(told["rate"], told["unit"])
            self.progress = RunProgress(self.job.name, told["progress"], told["done"], told["total"], pace)
            self.first = self.first or self.progress
        else:
            self.last_line = line.strip() or self.last_line
            with suppress(OSError):  # a full disk: what the process says must be taken, or it would wait
                self.log.write(line)

    @property
    def seconds(self) -> float:
        return 0.0 if self.begun is None else time.monotonic() - self.begun

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
            self._ask_to_end()
        self.asked = True

    def outcome(self) -> Ended:
        code, error = self._result()
        with suppress(OSError):
            self.log.close()
        if code < 0:
            error = f"killed by {signal.Signals(-code).name}"
            error += " (by the system, if memory ran out)" if -code == signal.SIGKILL else ""
        elif code:
            error = self.last_line.removeprefix("onedomain: ") or f"ended with exit code {code}"
        return Ended(self.job.name, self.job.log, self.seconds, error)


class _Process(Child):
    """A job on this machine."""

    def __init__(self, job: Job, keep_open: Sequence[int]) -> None:
        super().__init__(job)
        self.begins()
        self.process = start_process(job.command, self.log, keep_open=keep_open)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.said(line)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def _ask_to_end(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.outcome()

    def _result(self) -> tuple[int, str]:
        code = self.process.wait()
        self.reader.join()
        return code, ""
