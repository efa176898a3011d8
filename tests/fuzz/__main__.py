"""`python -m tests.fuzz`: every file that is read and every option that is taken, with thousands of bad inputs."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from onedomain.benchmarks.protocol import request
from tests.chaos import children
from tests.chaos import commands as chaos
from tests.fuzz import commands, datasets, readers
from tests.fuzz.worker import BADLY, SUCCEEDED, WELL, Ended, Input, Worker

MADE = {
    "run": chaos.TRAINED.format("erm", "run"),
    "uncertain": chaos.TRAINED.format("uncertain-sdg", "uncertain"),
    "half": chaos.TRAINED.format("erm", "half") + " --no-evaluate",
    "also-sdg": chaos.TRAINED.format("sdg", "also-sdg"),
    "half-sdg": chaos.TRAINED.format("sdg", "half-sdg") + " --no-evaluate",
    "tuned": "tune --benchmark chaos --trials 2 --jobs 1 --steps 1 --out tuned",
    "grid": "reproduce chaos --scale few --seeds 1 --out grid --jobs 1",
    "adapted": "adapt run --target near --shots 1 --steps 1 --out adapted --threads 1",
}
SECONDS_TO_SHRINK = 30.0  # an input that fails
ROUNDS = 5
MANY = 1000  # inputs, for which all commands are tried on unchanged files first


class Failed(Exception):
    """Says what an input did."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Bad inputs for every reader and command; fails if one ends badly.")
    parser.add_argument("--inputs", type=int, default=6500, help="of all readers and commands together, or a few more")
    parser.add_argument("--only", default="", help="readers and commands whose name begins so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true", help="with the next reader or command after a failure")
    parser.add_argument("--keep", default="fuzz-failure", help="folder for the files of the input that failed")
    asked = parser.parse_args()
    chaos.declare()
    request.DEMO_BENCHMARK = "chaos"
    children.prepare()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=children.scratch()) as place:
        space = Path(place)
        made = space / "made"
        made.mkdir()
        for line in MADE.values():
            if children.end(children.start(line, made, space / "said")):
                raise RuntimeError(f"{line}: {(space / 'said').read_text()[-2000:]}")
        readers.prepare(made)
        datasets.prepare(made)
        worker = Worker(space, made)
        read, calls = [*readers.readers(made), *datasets.readers(made)], commands.inputs()
        if asked.inputs >= MANY:
            _require_well(worker, [line for each in read for line in each.lines])
        kinds: list[tuple[str, SearchStrategy[Input], float]] = [
            *((f"reader {each.name}", each.inputs(), each.share) for each in read),
            *((f"command {name}", each, commands.SHARES.get(name, 1.0)) for name, each in calls.items()),
        ]
        chosen = [kind for kind in kinds if kind[0].partition(" ")[2].startswith(asked.only)]
        whole, total, begun = sum(share for _, _, share in chosen), Counter[str](), time.monotonic()
        for name, inputs, share in chosen:
            found = Found()
            _try(worker, inputs, max(1, math.ceil(asked.inputs * share / whole)), asked.seed, found)
            total += found.counts
            print(f"{name:36}{_told(found.counts, WELL)}{' FAILED' if found.failed else ''}", flush=True)
            if found.failed:
                _show(*found.failed, Path(asked.keep))
                if not asked.keep_going:
                    break
        worker.close()
    print(f"In {time.monotonic() - begun:.0f} s: {_told(total, (*WELL, *BADLY))}")
    return any(total[how] for how in BADLY)


def _told(counts: Counter[str], words: tuple[str, ...]) -> str:
    return ", ".join([f"{counts.total():5} inputs", *(f"{counts[how]} {how}" for how in words)])


def _require_well(worker: Worker, lines: Iterable[str]) -> None:
    """With the files as they are the commands succeed: what is refused later is refused for what is in the file."""
    failed = []
    for line in dict.fromkeys(lines):
        if worker.run(Input(tuple(line.split()))).how != SUCCEEDED:
            failed.append(f"onedomain {line}\n{worker.said.read_text()[-500:]}")
    if failed:
        raise RuntimeError("\n".join(failed))


class Found:
    """How each input ended; and the smallest found of the first kind that failed, with what it did."""

    def __init__(self) -> None:
        self.ended: dict[Input, Ended] = {}
        self.failed: tuple[Input, Ended] | None = None
        self.until = math.inf

    @property
    def counts(self) -> Counter[str]:
        return Counter(each.how for each in self.ended.values())


def _try(worker: Worker, inputs: SearchStrategy[Input], most: int, number: int, found: Found) -> None:
    """So many different inputs, if there are; fewer if one fails."""

    def try_one(each: Input) -> None:
        if time.monotonic() > found.until:
            return
        ended = found.ended[each] = worker.run(each)
        if ended.wrong:
            found.until = min(found.until, time.monotonic() + SECONDS_TO_SHRINK)
            found.failed = each, ended
            raise Failed

    for turn in range(ROUNDS):  # hypothesis may draw an input twice
        left = most - len(found.ended)
        if left <= 0 or found.failed:
            return
        options = settings(
            max_examples=left,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        try:
            seed(ROUNDS * number + turn)(options(given(inputs)(try_one)))()
        except BaseException:  # among others that of hypothesis, which saw an input fail that was not tried again
            if not found.failed:
                raise


def _show(each: Input, ended: Ended, keep: Path) -> None:
    print(f"onedomain {shlex.join(each.words)}")
    for name, content in each.files:
        (keep / name).parent.mkdir(parents=True, exist_ok=True)
        (keep / name).write_bytes(content)
        print(f"  with {keep / name} in the place of {name}: {content[:200]!r}")
    print(f"{ended.how}: {ended.wrong}")


if __name__ == "__main__":
    sys.exit(main())
