"""`onedomain reproduce`: plan the grid, run what is not there, print and keep the table."""

from __future__ import annotations

import json as json_format
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onedomain.cli.board import board
from onedomain.cli.reproduce_show import figures_command, plan_as_json, show_plan, show_result
from onedomain.data import data_folder
from onedomain.data.files import make_folder, read_json_lines, to_json_lines, write_atomically
from onedomain.data.processes import cores
from onedomain.data.progress import say
from onedomain.errors import Interrupted, OnedomainError, UserError
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.estimate import estimate
from onedomain.reporting.reproduce.formats import as_json, write_files
from onedomain.reporting.reproduce.plan import Bench, PlannedRun, benchmark_at, plan
from onedomain.reporting.reproduce.result import Failure, Result, tabulate
from onedomain.reporting.sweep import Ended, Grid, Job, run_jobs, sole_use

RECORDS = "records.jsonl"


@dataclass(frozen=True)
class Request:
    """What is asked for: a table at a scale, its seeds, and where and how its runs are made."""

    table: Table
    scale: Scale
    seeds: int = 3
    out: str | None = None
    jobs: int | None = None
    use: tuple[str, ...] = ()
    data: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        table, scale = self.table.at(self.scale)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "scale", scale)
        for option, number in (("--seeds", self.seeds), ("--jobs", self.jobs)):
            if number is not None and number < 1:
                raise UserError(option, f"got {number}", "a whole number from 1")
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError("--out", f"{self.folder} is a file", "a folder, there or not")

    @property
    def folder(self) -> Path:
        return Path(self.out or f"runs/reproduce/{self.table.name}-{self.scale.name}")

    @property
    def parallel(self) -> int:
        return self.jobs or cores()

    @property
    def what(self) -> list[str]:
        """The command that makes the same table anywhere: where data and runs lie is not part of it."""
        return ["onedomain", "reproduce", self.table.name, "--scale", self.scale.name, "--seeds", str(self.seeds)]

    @property
    def again(self) -> list[str]:
        """The command that goes on here."""
        given = {"--out": self.out, "--jobs": self.jobs, "--data": self.data, "--device": self.device}
        options = [*given.items(), *(("--use", folder) for folder in self.use)]
        return [*self.what, *(str(part) for option, value in options if value for part in (option, value))]

    def plan(self, benches: Mapping[str, Bench]) -> list[PlannedRun]:
        return plan(self.table, self.scale, self.seeds, self.folder, benches, self.use)


def show_what_would_be_done(request: Request, json: bool) -> None:
    """The plan and how long it takes; nothing is written."""
    benches = load_data(request)
    runs = request.plan(benches)
    given = request.table, request.scale, runs, estimate(runs, benches), request.parallel
    if json:
        print(json_format.dumps(plan_as_json(*given), indent=2))
    else:
        show_plan(*given)


def reproduce(request: Request, json: bool) -> None:
    """Run what is not there yet, then print and keep the table of all that is."""
    benches = load_data(request)
    request.plan(benches)  # what is wrong with it is told before anything is written
    with sole_use(request.folder) as keep_open:
        grid = run_grid(request, request.plan(benches), benches, keep_open)
        runs = request.plan(benches)
        failed = [each.name for each in grid.failed]
        partly = [run.name for run in runs if run.state == "to score" and run.name not in failed]
        records = collect([run for run in runs if run.state == "done" or run.name in partly], benches)
        result = tabulate(
            request.table,
            request.scale,
            records,
            seeds=range(request.seeds),
            failures=[Failure(each.name, each.error, str(each.log)) for each in grid.failed],
            command=shlex.join(request.what),
        )
        print_result(result, json)
        write_atomically(request.folder / RECORDS, to_json_lines(records))
        keep(result, request.folder)
    where = request.folder / "logs"
    if partly:
        say(f"not scored on every domain: {', '.join(partly)}; what they said is in {where}")
    if failed:
        names = ", ".join(failed)
        raise OnedomainError(f"{len(failed)} of {len(runs)} runs failed: {names}; what they said is in {where}")
    if not json and not request.table.few_shot:
        say(f"Figures: {figures_command(request.table, request.folder, runs)}")


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
    request: Request, runs: Sequence[PlannedRun], benches: Mapping[str, Bench], keep_open: Sequence[int]
) -> Grid:
    """Run what is not done."""
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
            raise Interrupted(f"stopped with {left} of {len(runs)} runs to go; go on with: {shlex.join(request.again)}")
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


def from_records(request: Request, files: Sequence[str], json: bool) -> None:
    """The table made again from records alone, kept if a folder is given."""
    records = []
    for file in files:
        if not Path(file).is_file():
            raise UserError("--from", f"{file} is not a file", f"a {RECORDS}, or the results.jsonl of a run")
        records += read_json_lines(Path(file), "metric")
    command = [*request.what[:-2], *(part for file in files for part in ("--from", file))]
    result = tabulate(request.table, request.scale, records, command=shlex.join(command))
    if not any(row.seeds for row in result.rows):
        given = f"no run of the table {request.table.name} at the scale {request.scale.name} in {', '.join(files)}"
        raise UserError("--from", given, "records of its methods, with its settings")
    print_result(result, json)
    if request.out:
        make_folder(request.folder)
        keep(result, request.folder)


def print_result(result: Result, json: bool) -> None:
    if json:
        print(json_format.dumps(as_json(result), indent=2, ensure_ascii=False))
    else:
        show_result(result)


def keep(result: Result, folder: Path) -> None:
    names = ", ".join(path.name for path in write_files(result, folder))
    say(f"In {folder}: {names}")
