"""The runs of a table: load its data, run what is not done, and collect the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from onedomain.data import data_folder
from onedomain.data.progress import say
from onedomain.errors import Interrupted
from onedomain.reporting.reproduce.estimate import estimate
from onedomain.reporting.reproduce.plan import Bench, PlannedRun, benchmark_at
from onedomain.reporting.reproduce.request import Request
from onedomain.reporting.sweep import Board, Ended, Grid, Job, run_jobs


def load_data(request: Request) -> dict[str, Bench]:
    """Every benchmark of the table, by its name."""
    torch.set_num_threads(1)  # as the runs have it: a few steps may be measured
    data = data_folder(request.data)
    table, scale = request.table, request.scale
    benches = {name: Bench.load(benchmark_at(name, scale), data, adapting=table.few_shot) for name in table.benchmarks}
    for reason in dict.fromkeys(reason for bench in benches.values() for reason in bench.missing):
        say(f"not scored: {reason}")
    return benches


def run_grid(
    request: Request,
    benches: Mapping[str, Bench],
    board: Callable[[str, int], AbstractContextManager[Board]],
    keep_open: Sequence[int],
) -> Grid:
    """Run what is not done; `board` is the display of so many runs, under a label."""
    runs = request.plan(benches)
    done = sum(run.state == "done" for run in runs)
    if done:
        say(f"{done} of {len(runs)} runs are there already")
    if done == len(runs):
        return Grid([], stopped=False)
    expected = estimate(runs, benches)
    ended: list[Ended] = []
    for adapted in (False, True):  # what is adapted needs its parent whole
        failed = {each.name for each in ended if each.error}
        jobs = []
        for run in expected.runs:
            if (run.parent is not None) is not adapted:
                continue
            log = request.folder / "logs" / f"{run.name}.log"
            if run.parent and run.parent.name in failed:
                ended.append(Ended(run.name, log, 0.0, f"{run.parent.name}, which it is adapted from, failed"))
            else:
                jobs.append(Job(run.name, run.command(request.data, request.device), log, expected.seconds[run.name]))
        if not jobs:
            continue
        with board(request.table.name, len(jobs)) as shown:
            grid = run_jobs(jobs, request.parallel, shown, keep_open)
        ended += grid.ended
        if grid.stopped:
            left = len(expected.runs) - len(ended)
            raise Interrupted(f"stopped with {left} of {len(runs)} runs to go; go on with: {request.to_go_on()}")
    return Grid(ended, stopped=False)


def collect(runs: Sequence[PlannedRun], benches: Mapping[str, Bench]) -> list[dict[str, Any]]:
    """All records of these runs on their benchmarks as these are now, and what each run was made with."""
    records = []
    for run in runs:
        if run.records:
            made_with = run.records.manifest.environment.model_dump(include={"python", "torch", "numpy"})
            scored = benches[run.benchmark.name].scored
            rows = [
                row
                for row in run.records.results
                if row.get("benchmark") == run.benchmark.name
                and (row["domain"] not in scored or row["data"] == scored[row["domain"]].fingerprint)
            ]
            info = run.records.manifest.adaptation
            told = {"environment": made_with} | ({"adaptation": info.in_short()} if info else {})
            records += [{**row, **told} for row in rows]
    return records
