"""What Ray costs: a grid of short runs on a cluster that is started for it, against processes of this machine."""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from onedomain.cli.board import board
from onedomain.data.processes import cores
from onedomain.runs.cluster import Cluster, Connection
from onedomain.runs.job import Job
from onedomain.runs.sweep import run_jobs

RUNS = 12
TRAIN = (
    "-m",
    "onedomain",
    "train",
    "--benchmark",
    "digits-lite",
    "--method",
    "erm",
    "--steps",
    "100",
    "--threads",
    "1",
)


def run() -> None:
    if find_spec("ray") is None:
        print("grid of short runs: ray is not installed")
        return

    def jobs(out: str, seeds: range) -> list[Job]:
        folders = {f"erm-{seed}": Path(out, f"erm-{seed}") for seed in seeds}
        return [
            Job(
                name, (sys.executable, *TRAIN, "--seed", name[4:], "--out", str(folder)), Path(out, "log"), 10.0, folder
            )
            for name, folder in folders.items()
        ]

    def seconds(out: str, seeds: range, cluster: Connection | None = None) -> float:
        begun = time.monotonic()
        with board("ray" if cluster else "local", len(seeds)) as shown:
            grid = run_jobs(jobs(out, seeds), RUNS if cluster else cores(), shown, place=cluster)
        if grid.failed or grid.stopped:
            sys.exit("bench: not all runs ended well")
        return time.monotonic() - begun

    with tempfile.TemporaryDirectory() as local, tempfile.TemporaryDirectory() as elsewhere:
        # Half before and half after: what else the machine does hits both alike.
        processes = seconds(local, range(RUNS // 2))
        begun = time.monotonic()
        with Cluster().connected(Path(elsewhere)) as cluster:
            between = seconds(elsewhere, range(RUNS), cluster)
        ray = time.monotonic() - begun
        processes += seconds(local, range(RUNS // 2, RUNS))
    print(
        f"grid of {RUNS} short runs, {cores()} at a time: processes {processes:.1f} s, Ray {ray:.1f} s; "
        f"ratio {ray / processes:.2f}, without the {ray - between:.1f} s of its start and end {between / processes:.2f}"
    )
