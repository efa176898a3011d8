"""A forked process that runs one command after the other, each on an input, and is replaced when one kills it.

Whatever an input does is seen from outside: a signal, an endless loop, a traceback, and each file that is written to
beside the folder that the command may use.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from onedomain import cli
from onedomain.errors import UserError
from onedomain.runs import job
from tests.chaos.operations import WRITING

SECONDS = 10.0  # of the processor, or of waiting for anything else than the processor, which may be busy
MOST_MEMORY = 6 * 2**30  # a small file has no right to more
INPUTS_OF_A_PROCESS = 100
MAKING = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
_os_open = os.open
STARTING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
DEVICES = ("/dev/null", "/dev/full", "/dev/tty", "/proc/self/")
WELL = REFUSED, SUCCEEDED = "refused with one line", "succeeded"
BADLY = ("traceback", "hang over 10 s", "signal", "write outside the folder", "no clear line")
TRACEBACK, HANG, SIGNAL, OUTSIDE, UNCLEAR = BADLY


@dataclass(frozen=True)
class Input:
    """Files that are put into the folder, by their places, and the words of the command."""

    words: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()


class Touch:
    """A pickle of it would start a program where it is read."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


@dataclass(frozen=True)
class Ended:
    """How a command ended: a word of `WELL` or `BADLY`, and what is wrong with it."""

    how: str
    wrong: str = ""


class Worker:
    """Runs inputs in `space/trial`, which is made anew from `made` each time."""

    def __init__(self, space: Path, made: Path) -> None:
        self.trial, self.said, self.made = space / "trial", space / "said", made
        self.pid = self.done = 0

    def run(self, given: Input) -> Ended:
        if self.done >= INPUTS_OF_A_PROCESS:
            self.close()
        if not self.pid:
            self._start()
        self.done += 1
        shutil.rmtree(self.trial, ignore_errors=True)
        shutil.copytree(self.made, self.trial)
        for name, content in given.files:
            (self.trial / name).parent.mkdir(parents=True, exist_ok=True)
            (self.trial / name).write_bytes(content)
        content = pickle.dumps(given.words)
        os.write(self.to, len(content).to_bytes(8, "big") + content)
        begun, busy = time.monotonic(), self._busy()
        while not select.select([self.back], [], [], 0.5)[0]:
            if time.monotonic() - begun - (self._busy() - busy) > SECONDS:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self._closed()
                return Ended(HANG, f"it waited for {SECONDS:.0f} seconds")
        told = os.read(self.back, 2**16)
        if told:
            return Ended(*pickle.loads(told))
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._closed()
        if status == -signal.SIGXCPU:
            return Ended(HANG, f"it took {SECONDS:.0f} seconds")
        return Ended(SIGNAL, f"it was ended by signal {-status}")

    def _busy(self) -> float:
        """Seconds in which the process ran, or could have run."""
        running, ready, _ = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        return (int(running) + int(ready)) / 1e9

    def close(self) -> None:
        if self.pid:
            os.close(self.to)
            os.waitpid(self.pid, 0)
            os.close(self.back)
            self.pid = self.done = 0

    def _closed(self) -> None:
        os.close(self.to)
        os.close(self.back)
        self.pid = self.done = 0

    def _start(self) -> None:
        there, self.to = os.pipe()
        self.back, back = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(there)
            os.close(back)
            return
        os.close(self.to)
        os.close(self.back)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: no processes of its own
        output = os.open(self.said, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        job.subprocess = SimpleNamespace(Popen=_begin_no_run, DEVNULL=subprocess.DEVNULL, PIPE=subprocess.PIPE)
        torch.set_num_threads = lambda number: None  # a forked process has one thread to give
        watch = Watch(self.trial)
        while head := os.read(there, 8):
            size, words = int.from_bytes(head, "big"), b""
            while len(words) < size:
                words += os.read(there, size - len(words))
            os.truncate(output, 0)
            os.chdir(self.trial)
            _allow_seconds()
            how, wrong = watch.run(pickle.loads(words), output)
            os.write(back, pickle.dumps((how, wrong[:3000])))
        os._exit(0)


def _begin_no_run(*_: Any, **__: Any) -> None:
    """Up to here a grid or a tuning takes what it is given; its runs are tried by themselves."""
    raise UserError("run", "was to begin", "none here")


def _allow_seconds() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + SECONDS) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


class Watch:
    """Runs a command, and judges what it said, how it ended, and where it wrote."""

    def __init__(self, trial: Path) -> None:
        self.trial, self.on = trial.resolve(), False
        self.folder: int | None = None
        self.outside: list[str] = []
        os.open = self._open  # type: ignore[assignment]
        sys.addaudithook(self._heard)

    def run(self, words: tuple[str, ...], output: int) -> tuple[str, str]:
        sys.argv = ["onedomain", *words]
        sys.stdout, sys.stderr = (os.fdopen(os.dup(output), "w", encoding="utf-8") for _ in range(2))
        self.outside, self.on = [], True
        try:
            cli.main()
            code: Any = None
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc()
            code = 70
        self.on = False
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        said = os.pread(output, 2**20, 0).decode(errors="replace")
        if self.outside:
            return OUTSIDE, "; ".join(self.outside)
        return _judged(code, said)

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        self.folder = dir_fd  # which the event of it does not tell
        try:
            return _os_open(path, flags, mode, dir_fd=dir_fd)
        finally:
            self.folder = None

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            if given[2] is not None and given[2] & WRITING:
                self._written(event, given[0], self.folder)
        elif event in ("os.rename", "os.link"):
            self._written(event, given[0], given[2])
            self._written(event, given[1], given[3])
        elif event in MAKING:
            self._written(event, given[0], given[-1] if event in ("os.mkdir", "os.remove", "os.rmdir") else None)
        elif event in STARTING:
            self.outside.append(f"{event} of {given[:2]!r:.200}")

    def _written(self, event: str, place: Any, folder: int | None) -> None:
        if isinstance(place, int):  # an open file, which was heard of
            return
        base = Path.cwd() if folder in (None, -1) else Path(f"/proc/self/fd/{folder}").readlink()
        path = base / os.fsdecode(place)
        where = path.parent.resolve() / path.name
        if not where.is_relative_to(self.trial) and not str(where).startswith(DEVICES):
            self.outside.append(f"{event} of {where}")


def _judged(code: Any, said: str) -> tuple[str, str]:
    lines = [line for line in said.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("onedomain: ")]
    if "Traceback" in said or re.search(r"^\w*Error: ", said, re.MULTILINE):
        return TRACEBACK, said[-2000:]
    if "Warning: " in said:
        return UNCLEAR, f"a warning: {said[-500:]}"
    if code not in (0, None, 2) and not (code == 1 and told and "try a smaller" in told[-1]):
        return UNCLEAR, f"exit code {code}: {said[-500:]}"
    if code and (len(told) != 1 or told[0] != lines[-1]):
        return UNCLEAR, f"exit code {code} without one line: {said[-500:]}"
    if odd := {letter for letter in said if not letter.isprintable() and letter not in "\n\r\xa0"}:
        return UNCLEAR, f"it printed {sorted(odd)}"
    return REFUSED if code else SUCCEEDED, ""
