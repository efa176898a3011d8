"""`python -m tests.chaos`: kill every command again and again, and see whether anything is lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import children, commands
from tests.chaos.trials import Trials


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill commands at their file operations; fails if anything is lost.")
    parser.add_argument("--kills", type=int, default=330, help="at least so many trials, of all commands together")
    parser.add_argument("--only", help="commands whose name begins so")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    given = parser.parse_args()
    chosen = [each for each in commands.COMMANDS if each.name.startswith(given.only or "")]
    commands.declare()
    children.prepare()
    begun, kills, lost = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=children.scratch()) as space:
        trials = Trials(Path(space), given.seed)
        for command in chosen:
            tally = trials.of(command, -(-given.kills // len(chosen)))
            kills, lost = kills + tally.kills, lost + tally.lost
            told = f"{tally.kills:4} kills and {tally.full_disks} full disks among {tally.operations} operations"
            print(f"{command.name:20} {told}: {len(tally.lost)} lost", flush=True)
    print(f"{kills} kills in {time.monotonic() - begun:.0f} s: {len(lost)} lost")
    for problem in lost:
        print(problem)
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
