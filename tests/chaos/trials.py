"""A trial: a command is killed, called again, and must end with every file as an undisturbed call leaves it."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from tests.chaos.children import end, start
from tests.chaos.commands import MADE, Command

LOGS = "logs"  # of a grid: they tell of both calls
JOURNAL = "study.jsonl"  # of a tuning: what it came to stands in other files
AT_RANDOM_MOMENTS = 0.2  # share of the trials; the others are killed at an operation


@dataclass
class Tally:
    """What became of a command's trials."""

    operations: int
    kills: int = 0
    full_disks: int = 0
    lost: list[str] = field(default_factory=list)


class Trials:
    """Trials of one command after the other, in sub-folders of `space`."""

    def __init__(self, space: Path, seed: int = 0) -> None:
        self.space, self.random, self.said = space, random.Random(seed), space / "said"
        self.made = space / "made"
        self.made.mkdir()
        (self.made / "images").mkdir()
        for number in range(3):
            pixels = np.random.default_rng(number).integers(0, 256, (16, 16, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(self.made / "images" / f"{number}.png")
        for line in MADE.values():
            self._whole(line, self.made)

    def of(self, command: Command, kills: int) -> Tally:
        """Kill it so many times: at operations from the first to the last, and at random moments.

        Beside that the disk is full from some operations on, and once two calls begin at the same time.
        """
        begun = time.monotonic()
        whole = self._begun(command)
        tally = Tally(self._whole(command.line, whole))
        self.seconds, self.wanted = time.monotonic() - begun, contents(whole)
        at_moments = round(AT_RANDOM_MOMENTS * kills)
        for place in [*self._places(tally.operations, kills - at_moments), *[None] * at_moments]:
            folder = self._begun(command)
            tally.kills += self._killed(command.line, folder, place)
            if self.random.random() < 0.3:  # and once more while it goes on
                once_more = None if place is None else self.random.randint(1, tally.operations)
                tally.kills += self._killed(command.line + command.again, folder, once_more)
            tally.lost += self._gone_on(command, folder, f"killed {f'at operation {place}' if place else 'at random'}")
        for place in self._places(tally.operations, kills // 5):
            folder, tally.full_disks = self._begun(command), tally.full_disks + 1
            code = end(start(command.line, folder, self.said, last=place, full=True))
            tally.lost += self._gone_on(command, folder, f"without room from operation {place} on", {code} - {0, 1, 2})
        if kills >= 5:
            folder = self._begun(command)
            both = [start(command.line, folder, self.said) for _ in range(2)]
            codes = {end(pid) for pid in both}
            tally.lost += self._gone_on(command, folder, "twice at once", codes - {0, 2} if 0 in codes else codes)
        return tally

    def _places(self, operations: int, count: int) -> list[int]:
        """Operations, one of each part of the command: all of them, if there are not more."""
        count = min(count, operations)
        return sorted({1 + int((part + self.random.random()) * operations / count) for part in range(count)})

    def _gone_on(self, command: Command, folder: Path, how: str, codes: Iterable[int] = ()) -> list[str]:
        """Call it again; what is wrong then."""
        code = end(start(command.line + command.again, folder, self.said))
        found, said = contents(folder), self.said.read_text(errors="replace")
        wrong = [f"exit code {each} first" for each in codes] + ["a traceback"] * ("Traceback" in said)
        if code or found != self.wanted:
            every = found.keys() | self.wanted.keys()
            odd = sorted(name for name in every if found.get(name) != self.wanted.get(name))
            wrong.append(f"exit code {code}, {', '.join(odd) or 'nothing'} differs")
        return [f"{command.name}, {how}: {', '.join(wrong)}; it said {said.splitlines()[-3:]}"] if wrong else []

    def _killed(self, line: str, folder: Path, place: int | None) -> bool:
        """Whether it was killed: a later call may end before that operation, or moment."""
        pid = start(line, folder, self.said, last=place)
        if place is not None:
            return end(pid) == -signal.SIGKILL
        time.sleep(self.random.uniform(0, self.seconds))
        return end(pid, seconds=0.0) == -signal.SIGALRM

    def _whole(self, line: str, folder: Path) -> int:
        """Run it undisturbed; how many operations it did."""
        counts = self.space / "counts"
        code = end(start(line, folder, self.said, counts))
        if code:
            raise RuntimeError(f"{line} ended with exit code {code}: {self.said.read_text()[-2000:]}")
        return int(counts.read_text())

    def _begun(self, command: Command) -> Path:
        """A new folder with what the command needs. It is always the same one: its name may stand in files."""
        folder = self.space / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        self.said.unlink(missing_ok=True)
        folder.mkdir()
        for name in command.needs:
            shutil.copytree(self.made / name, folder / name)
        return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its place, but for logs and journals; an empty folder is one, too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.parent.name != LOGS and path.name != JOURNAL
    }
