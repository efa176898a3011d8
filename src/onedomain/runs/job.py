"""A run to make in a process of its own, and what it says of itself while it goes."""

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
from typing import IO

from onedomain.data.files import make_folder, open_own, os_errors_are_user_errors
from onedomain.data.progress import FORM, speed

MAIN_PART = 0.95  # share of a job's time that what it does first is taken for
KILLED = "killed by"  # what the error of a run begins with that did not end by itself


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
    """How a run ended: an `error` of one line, empty if it went well; whether the feed ended it; what to say beside."""

    name: str
    log: Path
    seconds: float
    error: str = ""
    early: bool = False
    note: str = ""


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
        self.scores: list[tuple[int, float]] = []
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
        elif line.startswith('{"score"') and line.endswith("}\n"):
            told = json.loads(line)
            self.scores.append((told["done"], told["score"]))
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

    def new_scores(self) -> list[tuple[int, float]]:
        """How good it said to be since the last look."""
        count = len(self.scores)  # the reader may add further ones meanwhile
        new, self.scores[:count] = self.scores[:count], []
        return new

    def ask_to_end(self) -> None:
        if not (self.asked or self.ended):
            self._ask_to_end()
        self.asked = True

    def outcome(self) -> Ended:
        code, error = self._result()
        with suppress(OSError):
            self.log.close()
        if code < 0:
            error = f"{KILLED} {signal.Signals(-code).name}"
            error += " (by the system, if memory ran out)" if -code == signal.SIGKILL else ""
        elif code:
            error = self.last_line.removeprefix("onedomain: ") or f"ended with exit code {code}"
        return Ended(self.job.name, self.job.log, self.seconds, error)


class Process(Child):
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
