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
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onedomain import cli
from tests.chaos.operations import WRITING

SECONDS = 10.0  # of the processor; on a machine that does other things, too, waiting is allowed for longer
SECONDS_IN_ALL = 60.0
MOST_MEMORY = 6 * 2**30  # a small file has no right to more
INPUTS_OF_A_PROCESS = 100
MAKING = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
STARTING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")


@dataclass(frozen=True)
class Input:
    """Files that are put into the folder, by their places, and the words of the command."""

    words: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()


class Worker:
    """Runs inputs in `space/trial`, which is made anew from `made` each time."""

    def __init__(self, space: Path, made: Path) -> None:
        self.trial, self.said, self.made = space / "trial", space / "said", made
        self.pid = self.done = 0

    def run(self, given: Input) -> str:
        """What is wrong with how the command ended; empty if nothing is."""
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
        if not select.select([self.back], [], [], SECONDS_IN_ALL)[0]:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._closed()
            return f"it did not end in {SECONDS_IN_ALL:.0f} seconds"
        told = os.read(self.back, 2**16)
        if told:
            return str(pickle.loads(told))
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._closed()
        return f"it took {SECONDS:.0f} seconds" if status == -signal.SIGXCPU else f"it was ended by signal {-status}"

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
        output = os.open(self.said, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        torch.set_num_threads = lambda number: None  # a forked process has one thread to give
        watch = Watch(self.trial)
        while head := os.read(there, 8):
            size, words = int.from_bytes(head, "big"), b""
            while len(words) < size:
                words += os.read(there, size - len(words))
            os.truncate(output, 0)
            os.chdir(self.trial)
            _allow_seconds()
            wrong = watch.run(pickle.loads(words), output)
            os.write(back, pickle.dumps(wrong[:3000]))
        os._exit(0)


def _allow_seconds() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + SECONDS) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


class Watch:
    """Runs a command, and judges what it said, how it ended, and where it wrote."""

    def __init__(self, trial: Path) -> None:
        self.trial, self.on = str(trial), False
        self.wrong: list[str] = []
        sys.addaudithook(self._heard)

    def run(self, words: tuple[str, ...], output: int) -> str:
        sys.argv = ["onedomain", *words]
        sys.stdout, sys.stderr = (os.fdopen(os.dup(output), "w", encoding="utf-8") for _ in range(2))
        self.wrong, self.on, begun = [], True, time.monotonic()
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
        return "; ".join([*self.wrong, *_wrong(code, said, time.monotonic() - begun)])

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        writes = event in MAKING or (event == "open" and given[2] is not None and given[2] & WRITING)
        if writes and isinstance(given[0], (str, bytes)):
            place = str(Path(os.fsdecode(given[0])).absolute())
            if not place.startswith((self.trial, "/dev/", "/proc/self/")):
                self.wrong.append(f"{event} of {place}")
        elif event in STARTING:
            self.wrong.append(f"{event} of {given[:2]!r:.200}")


def _wrong(code: Any, said: str, seconds: float) -> list[str]:
    lines = [line for line in said.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("onedomain: ")]
    found = []
    if "Traceback" in said or re.search(r"^\w*Error: ", said, re.MULTILINE):
        found.append(f"a traceback: {said[-2000:]}")
    elif "Warning: " in said:
        found.append(f"a warning: {said[-500:]}")
    if code not in (0, 2) and not (code == 1 and told and "try a smaller" in told[-1]):
        found.append(f"exit code {code}: {said[-500:]}")
    elif code and (len(told) != 1 or told[0] != lines[-1]):
        found.append(f"exit code {code} without one line: {said[-500:]}")
    if odd := {letter for letter in said if not letter.isprintable() and letter not in "\n\r\xa0"}:
        found.append(f"it printed {sorted(odd)}")
    return found
