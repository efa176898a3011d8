"""`python -m tests.fuzz`: every file that is read and every option that is taken, with thousands of bad inputs."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from onedomain.benchmarks.protocol import request
from tests.chaos import children
from tests.chaos import commands as chaos
from tests.fuzz import commands, readers
from tests.fuzz.worker import Input, Worker

MADE = {
    "run": chaos.TRAINED.format("erm", "run"),
    "uncertain": chaos.TRAINED.format("uncertain-sdg", "uncertain") + " --no-evaluate",
    "half": chaos.TRAINED.format("erm", "half") + " --no-evaluate",
    "also-sdg": chaos.TRAINED.format("sdg", "also-sdg"),
    "half-sdg": chaos.TRAINED.format("sdg", "half-sdg") + " --no-evaluate",
    "adapted": "adapt run --target near --shots 1 --steps 1 --out adapted --threads 1",
}


SECONDS_TO_SHRINK = 30.0  # an input that fails


class Failed(Exception):
    """Says what an input did."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Bad inputs for every reader and command; fails at the first failure.")
    parser.add_argument("--inputs", type=int, default=5000, help="of all readers and commands together, or a few more")
    parser.add_argument("--only", default="", help="readers and commands whose name begins so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true", help="with the next reader or command after a failure")
    parser.add_argument("--keep", default="fuzz-failure", help="folder for the files of the input that failed")
    asked = parser.parse_args()
    chaos.declare()
    request.DEMO_BENCHMARK = "chaos"
    children.prepare()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        space = Path(place)
        made = space / "made"
        made.mkdir()
        for line in MADE.values():
            if children.end(children.start(line, made, space / "said")):
                raise RuntimeError(f"{line}: {(space / 'said').read_text()[-2000:]}")
        readers.prepare(made)
        worker = Worker(space, made)
        kinds: list[tuple[str, SearchStrategy[Input], float]] = [
            *((f"reader {each.name}", each.inputs(), each.share) for each in readers.readers(made)),
            *((f"command {name}", calls, commands.SHARES.get(name, 1.0)) for name, calls in commands.inputs().items()),
        ]
        chosen = [kind for kind in kinds if kind[0].partition(" ")[2].startswith(asked.only)]
        failures: list[str] = []
        whole, total, begun = sum(share for _, _, share in chosen), 0, time.monotonic()
        for name, inputs, share in chosen:
            count, failed = _tried(worker, inputs, max(1, round(asked.inputs * share / whole + 0.5)), asked.seed)
            total += count
            print(f"{name:32} {count:5} inputs: {'FAILED' if failed else 'none failed'}", flush=True)
            if failed:
                _show(*failed, Path(asked.keep))
                failures.append(name)
                if not asked.keep_going:
                    break
        worker.close()
    print(f"{total} inputs in {time.monotonic() - begun:.0f} s: {', '.join(failures) or 'none'} failed")
    return bool(failures)


def _tried(
    worker: Worker, inputs: SearchStrategy[Input], most: int, number: int
) -> tuple[int, tuple[Input, str] | None]:
    """How many different inputs were tried, and the smallest found of the first kind that failed, with what it did."""
    tried: set[Input] = set()
    failures: list[tuple[Input, str, float]] = []

    @seed(number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(inputs)
    def try_one(each: Input) -> None:
        if failures and time.monotonic() > failures[0][2] + SECONDS_TO_SHRINK:
            return
        tried.add(each)
        if wrong := worker.run(each):
            failures.append((each, wrong, time.monotonic()))
            raise Failed

    try:
        try_one()
    except BaseException:  # among others that of hypothesis, which saw an input fail that was not tried again
        if not failures:
            raise
    return len(tried), failures[-1][:2] if failures else None


def _show(each: Input, wrong: str, keep: Path) -> None:
    print(f"onedomain {shlex.join(each.words)}")
    for name, content in each.files:
        (keep / name).parent.mkdir(parents=True, exist_ok=True)
        (keep / name).write_bytes(content)
        print(f"  with {keep / name} in the place of {name}: {content[:200]!r}")
    print(wrong)


if __name__ == "__main__":
    sys.exit(main())
