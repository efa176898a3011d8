"""What `onedomain reproduce` does: shows a plan, runs it, and prints and keeps its table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onedomain.cli.board import board
from onedomain.cli.output import print_json
from onedomain.data.files import to_json_lines, write_atomically
from onedomain.data.folders import SECONDS_TO_WAIT, sole_use, tidied
from onedomain.data.progress import duration, say
from onedomain.errors import OnedomainError, UserError
from onedomain.reporting import table as model
from onedomain.reporting.render.terminal import show
from onedomain.reporting.reproduce.declare import Table
from onedomain.reporting.reproduce.formats import as_json as result_as_json
from onedomain.reporting.reproduce.formats import tables, write_files
from onedomain.reporting.reproduce.grid import Estimate, Request, collect, estimate, load_data, run_grid
from onedomain.reporting.reproduce.plan import PlannedRun, planned_steps
from onedomain.reporting.reproduce.result import Result, tabulate
from onedomain.runs.commandline import setting_text
from onedomain.runs.rows import read_records

RECORDS = "records.jsonl"
WIDTH = 160  # where the output is not a terminal: the tables of the paper are wide
PLANNED = ("method", "changed settings", "seed", "state", "about", "folder")


def show_what_would_be_done(request: Request, as_json: bool) -> None:
    """The plan and how long it takes; nothing is written."""
    benches = load_data(request)
    runs = request.plan(benches)
    expected = estimate(runs)
    if as_json:
        print_json(_plan_as_json(request, runs, expected))
        return
    waiting, jobs = f"{len(expected.runs)} of {len(runs)} runs to do", request.parallel
    if expected.runs:
        waiting += f", {jobs} at a time: about {duration(expected.together(jobs))} (from {expected.basis})"
    rows = []
    for run in runs:
        adapting, seconds = run.row.adaptation, expected.seconds.get(run.name)
        what = f"{adapting.method}, {adapting.shots} shots of {run.target}" if adapting else run.row.method
        changes = " ".join(f"{name}={setting_text(value)}" for name, value in run.beside.items())
        changes = " ".join(filter(None, [f"recipe={run.row.recipe}" if run.row.recipe else "", changes]))
        state = f"going on from {run.steps_done:,}" if run.state == "going on" else run.state
        about = "" if seconds is None else duration(seconds)
        rows.append(model.Row(run.name, model.texts(what, changes, str(run.seed), state, about, str(run.folder))))
    title = f"{request.table.title}; scale {request.scale.name}"
    title += ", a REDUCED protocol" if request.scale.reduced else ""
    columns = [model.Column(name, number=name in ("seed", "about")) for name in PLANNED]
    show(model.Table(title, "run", columns, rows, [waiting]), width=WIDTH)


def run_and_show(request: Request, as_json: bool) -> None:
    """Run what is not there yet, then print and keep the table of all that is."""
    benches = load_data(request)
    request.plan(benches)  # what is wrong with it is told before anything is written
    # Processes whose parent was killed end when they next tell their progress.
    with sole_use(request.folder, seconds=SECONDS_TO_WAIT, deep=False) as keep_open:
        grid = run_grid(request, benches, board, keep_open)
        runs = request.plan(benches)
        failed = [each.name for each in grid.failed]
        partly = [run.name for run in runs if run.state == "to score" and run.name not in failed]
        scored = [run for run in runs if run.state == "done" or run.name in partly]
        records = collect(scored)
        result = tabulate(
            request.table,
            request.scale,
            records,
            seeds=range(request.seeds),
            failures=grid.failed,
            steps=planned_steps(request.table, request.scale),
            command=request.as_typed(),
        )
        write_atomically(request.folder / RECORDS, to_json_lines(records))
        _keep_and_print(result, as_json, request.folder)
    where = request.folder / "logs"
    if partly:
        say(f"not scored on every domain: {', '.join(partly)}; see their output in {where}")
    if failed:
        names = ", ".join(failed)
        raise OnedomainError(f"{len(failed)} of {len(runs)} runs failed: {names}; see their output in {where}")
    if not as_json and not request.table.few_shot:
        say(f"Figures: {_figures_command(request.table, request.folder, runs)}")


def from_records(request: Request, files: Sequence[str], as_json: bool) -> None:
    """The table made again from records alone, kept if a folder is given."""
    records = []
    for file in files:
        if not Path(file).is_file():
            raise UserError("--from", f"{file} is not a file", f"a {RECORDS}, or the results.jsonl of a run")
        records += read_records(Path(file))
    steps = planned_steps(request.table, request.scale)
    result = tabulate(request.table, request.scale, records, steps=steps, command=request.as_typed(files))
    if not any(row.seeds for row in result.rows):
        given = f"no run of the table {request.table.name} at the scale {request.scale.name} in {', '.join(files)}"
        raise UserError("--from", given, "records of its methods, with its settings")
    _keep_and_print(result, as_json, request.folder if request.out else None)


def _keep_and_print(result: Result, as_json: bool, folder: Path | None) -> None:
    """Kept first, so that a terminal that is gone loses nothing; and shown even if it cannot be kept."""
    kept: list[str] = []
    try:
        if folder:
            with tidied(folder):
                kept = [path.name for path in write_files(result, folder)]
    finally:
        if as_json:
            print_json(result_as_json(result))
        else:
            show(*tables(result), width=WIDTH)
    if kept:
        say(f"In {folder}: {', '.join(kept)}")


def _plan_as_json(request: Request, runs: Sequence[PlannedRun], expected: Estimate) -> dict[str, Any]:
    return {
        "table": request.table.name,
        "benchmarks": list(request.table.benchmarks),
        "scale": request.scale.name,
        "reduced": request.scale.reduced,
        "jobs": request.parallel,
        "runs": [
            {
                "run": run.name,
                "benchmark": run.bench.benchmark.name,
                "method": run.row.adaptation.method if run.row.adaptation else run.row.method,
                "parent": run.parent.name if run.parent else None,
                "target": run.target or None,
                "shots": run.row.adaptation.shots if run.row.adaptation else None,
                "network": run.bench.benchmark.network,
                "settings": run.method.settings.model_dump(mode="json"),
                "seed": run.seed,
                "folder": str(run.folder),
                "state": run.state,
                "steps_done": run.steps_done,
                "seconds": expected.seconds.get(run.name, 0.0),
            }
            for run in runs
        ],
        "seconds": expected.together(request.parallel),
        "estimated_from": expected.basis,
    }


def _figures_command(table: Table, folder: Path, runs: Sequence[PlannedRun]) -> str:
    """What draws the figures of the runs of the first seed; they are of one benchmark at a time."""
    benchmark, *others = table.benchmarks
    shown = [run.folder for run in runs if run.seed == 0 and run.bench.benchmark.name == benchmark]
    elsewhere = [place for place in shown if place.parent != folder]
    inside = f"{shlex.quote(str(folder))}/{benchmark if others else ''}*-0"  # unquoted: the shell finds the folders
    out = folder / "figures" / benchmark if others else folder / "figures"
    given = [inside] * (len(elsewhere) < len(shown)) + [shlex.quote(str(place)) for place in elsewhere]
    likewise = f"  (likewise for {', '.join(others)})" if others else ""
    return f"onedomain figures {' '.join(given)} --out {shlex.quote(str(out))}{likewise}"
