"""`onedomain reproduce`: plan the grid of a table, run what is not there, print and keep the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onedomain.cli import options as shared
from onedomain.data.progress import say
from onedomain.errors import OnedomainError, UserError

if TYPE_CHECKING:
    from onedomain.reporting.reproduce.grid import Request
    from onedomain.reporting.reproduce.result import Result

GROUP = shared.RESULTS
RUNS, RECORDS = "Runs", "records.jsonl"


def _table_names() -> list[str]:
    from onedomain.reporting.reproduce.tables import TABLES

    return list(TABLES)


@dataclass(frozen=True)
class Options:
    name: str = shared.argument(
        "NAME",
        "digits, efficiency, ablation, curves, segmentation, few-shot, cifar-severity or cifar-corruptions.",
        complete=_table_names,
    )
    scale: str = shared.option(
        "--scale quick|full", "A reduced protocol, or the whole one (many hours).", default="quick"
    )
    seeds: int = shared.option("--seeds", "How many: 3 are the seeds 0, 1 and 2.", default=3)
    out: str | None = shared.option("--out DIR", "Folder for runs and table. [runs/reproduce/NAME-SCALE]")
    records: list[str] | None = shared.option("--from FILE", "Make the table from records alone, no run; repeatable.")
    dry_run: bool = shared.option("--dry-run", "Show the runs and how long they take, run none.", default=False)
    jobs: int | None = shared.option("--jobs -j", "How many at a time; by default one per core.", group=RUNS)
    use: list[str] | None = shared.option(
        "--use DIR", "Take finished ones with the same settings from here; repeatable.", group=RUNS
    )
    data: str | None = shared.data()
    device: str | None = shared.device()
    json: bool = shared.json()


def reproduce(options: Options) -> None:
    """Make a table of the paper: run its grid, and print the paper's numbers beside ours.

    Runs that are finished are not repeated; killed or stopped, the same command goes on.
    """
    from onedomain.reporting.reproduce.tables import find_scale, find_table

    table, scale = find_table(options.name), find_scale(options.scale)
    if options.records and (options.dry_run or options.use):
        raise UserError("--from", f"given together with {'--dry-run' if options.dry_run else '--use'}", "one of them")
    from onedomain.reporting.reproduce.grid import Request

    request = Request(
        table,
        scale,
        options.seeds,
        options.out,
        options.jobs,
        tuple(options.use or ()),
        options.data,
        options.device,
    )
    if options.records:
        from_records(request, options.records, options.json)
    elif options.dry_run:
        show_what_would_be_done(request, options.json)
    else:
        run_and_show(request, options.json)


def show_what_would_be_done(request: Request, as_json: bool) -> None:
    """The plan and how long it takes; nothing is written."""
    from onedomain.cli.reproduce_show import plan_as_json, show_plan
    from onedomain.reporting.reproduce.estimate import estimate
    from onedomain.reporting.reproduce.grid import load_data

    benches = load_data(request)
    runs = request.plan(benches)
    given = request.table, request.scale, runs, estimate(runs, benches), request.parallel
    if as_json:
        print(json.dumps(plan_as_json(*given), indent=2))
    else:
        show_plan(*given)


def run_and_show(request: Request, as_json: bool) -> None:
    """Run what is not there yet, then print and keep the table of all that is."""
    from onedomain.benchmarks.protocol.recipes import completed_record
    from onedomain.cli.board import board
    from onedomain.cli.reproduce_show import figures_command
    from onedomain.data.files import to_json_lines, write_atomically
    from onedomain.reporting.reproduce.grid import collect, load_data, run_grid
    from onedomain.reporting.reproduce.plan import planned_steps
    from onedomain.reporting.reproduce.result import Failure, tabulate
    from onedomain.reporting.sweep import sole_use

    benches = load_data(request)
    request.plan(benches)  # what is wrong with it is told before anything is written
    with sole_use(request.folder) as keep_open:
        grid = run_grid(request, benches, board, keep_open)
        runs = request.plan(benches)
        failed = [each.name for each in grid.failed]
        partly = [run.name for run in runs if run.state == "to score" and run.name not in failed]
        scored = [run for run in runs if run.state == "done" or run.name in partly]
        records = [completed_record(row) for row in collect(scored, benches)]
        result = tabulate(
            request.table,
            request.scale,
            records,
            seeds=range(request.seeds),
            failures=[Failure(each.name, each.error, str(each.log)) for each in grid.failed],
            steps=planned_steps(request.table, request.scale),
            command=request.as_typed(),
        )
        _print(result, as_json)
        write_atomically(request.folder / RECORDS, to_json_lines(records))
        _keep(result, request.folder)
    where = request.folder / "logs"
    if partly:
        say(f"not scored on every domain: {', '.join(partly)}; see their output in {where}")
    if failed:
        names = ", ".join(failed)
        raise OnedomainError(f"{len(failed)} of {len(runs)} runs failed: {names}; see their output in {where}")
    if not as_json and not request.table.few_shot:
        say(f"Figures: {figures_command(request.table, request.folder, runs)}")


def from_records(request: Request, files: Sequence[str], as_json: bool) -> None:
    """The table made again from records alone, kept if a folder is given."""
    from onedomain.benchmarks.protocol.recipes import completed_record
    from onedomain.data.files import make_folder, read_json_lines
    from onedomain.reporting.reproduce.plan import planned_steps
    from onedomain.reporting.reproduce.result import tabulate

    records = []
    for file in files:
        if not Path(file).is_file():
            raise UserError("--from", f"{file} is not a file", f"a {RECORDS}, or the results.jsonl of a run")
        records += [completed_record(row) for row in read_json_lines(Path(file), "metric")]
    steps = planned_steps(request.table, request.scale)
    result = tabulate(request.table, request.scale, records, steps=steps, command=request.as_typed(files))
    if not any(row.seeds for row in result.rows):
        given = f"no run of the table {request.table.name} at the scale {request.scale.name} in {', '.join(files)}"
        raise UserError("--from", given, "records of its methods, with its settings")
    _print(result, as_json)
    if request.out:
        make_folder(request.folder)
        _keep(result, request.folder)


def _print(result: Result, as_json: bool) -> None:
    from onedomain.cli.reproduce_show import show_result
    from onedomain.reporting.reproduce import formats

    if as_json:
        print(json.dumps(formats.as_json(result), indent=2, ensure_ascii=False))
    else:
        show_result(result)


def _keep(result: Result, folder: Path) -> None:
    from onedomain.reporting.reproduce.formats import write_files

    names = ", ".join(path.name for path in write_files(result, folder))
    say(f"In {folder}: {names}")
