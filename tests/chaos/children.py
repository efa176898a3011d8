"""Commands in processes that are forked from this one, which has imported everything: a kill takes a moment.

Clocks stand still in them, so that what two of them write can be compared bit by bit.
"""

from __future__ import annotations

import datetime
import importlib
import os
import pkgutil
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

import onedomain
from onedomain import cli
from onedomain.runs import job
from onedomain.training import loop
from tests.chaos.operations import Operations

MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
ROOM = 2**30  # bytes


def scratch() -> str | None:
    """Where folders are made: in memory if there is room, for no kill of a process tells that from a disk."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else None


def prepare() -> None:
    """Import all that commands import when they run."""
    torch.set_num_threads(1)
    platform.platform()  # asks another process, once
    for module in pkgutil.walk_packages(onedomain.__path__, "onedomain."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("torch._dynamo")  # the first optimiser of a process does, for seconds


def start(
    line: str, folder: Path, said: Path, counts: Path | None = None, last: int | None = None, full: bool = False
) -> int:
    """The process of a command in this folder, killed before its operation `last`, or which notes how many it did.

    With `full` the disk is full from there on instead.
    """
    pid = os.fork()
    if pid:
        return pid
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.chdir(folder)
    os.sched_setaffinity(
        0, {min(os.sched_getaffinity(0))}
    )  # one core: no processes of its own that were to be imported
    _stop_clocks()
    job.subprocess = SimpleNamespace(Popen=Forked, DEVNULL=subprocess.DEVNULL, PIPE=subprocess.PIPE)
    operations = Operations(folder, last, full)
    Forked.operations = operations
    code = _run(shlex.split(line))
    if counts is not None:
        number = operations.count
        counts.write_text(str(number))
    os._exit(code)


def end(pid: int, seconds: float = 120.0) -> int:
    """Its exit code; below 0 the signal that killed it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGALRM  # it hung


def _run(words: list[str]) -> int:
    sys.argv = ["onedomain", *words]
    sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", encoding="utf-8") for number in (1, 2))
    try:
        cli.main()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 70


def _stop_clocks() -> None:
    class Still(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            return MOMENT

    datetime.datetime = Still  # type: ignore[misc]
    job.Child.seconds = property(lambda child: 0.0)  # type: ignore[assignment,method-assign]
    loop.Keeper.seconds = property(lambda keeper: 0.0)  # type: ignore[assignment,misc]
    loop.SECONDS_BETWEEN_SAVED_PARTS = -1.0  # whatever a method does between two steps is saved part by part
    loop.peak_memory_mb = lambda: 1


class Forked:
    """What a grid needs of `subprocess.Popen`, forked too; its operations do not count as the grid's."""

    operations: Operations

    def __init__(self, command: tuple[str, ...], *, stdout: Any, env: dict[str, str], pass_fds: Any, **_: Any) -> None:
        assert command[1:3] == ("-m", "onedomain")
        read, write = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            self._become(command[3:], stdout.fileno(), write, env, pass_fds)
        os.close(write)
        self.stderr = os.fdopen(read, encoding="utf-8", errors="replace")

    def _become(self, words: tuple[str, ...], stdout: int, stderr: int, env: dict[str, str], kept: Any) -> NoReturn:
        self.operations.last = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for handle in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
            if handle > 2 and handle not in kept:  # not closed: the files that have these numbers will do that
                os.dup2(nowhere, handle)
        os.environ.update(env)
        os._exit(_run(list(words)))

    def poll(self) -> int | None:
        if self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if done else None
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.002)
        assert self.returncode is not None
        return self.returncode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
