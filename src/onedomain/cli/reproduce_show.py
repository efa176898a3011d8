"""What a person reads of a plan and of a table in the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onedomain.data.progress import duration
from onedomain.reporting import table as model
from onedomain.reporting.render.terminal import show
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.estimate import Estimate
from onedomain.reporting.reproduce.formats import tables
from onedomain.reporting.reproduce.plan import PlannedRun
from onedomain.reporting.reproduce.result import Result
from onedomain.runs.commandline import setting_text

WIDTH = 160  # where the output is not a terminal: the tables of the paper are wide


def show_result(result: Result) -> None:
    show(*tables(result), width=WIDTH)


def show_plan(table: Table, scale: Scale, runs: Sequence[PlannedRun], expected: Estimate, jobs: int) -> None:
    waiting = f"{len(expected.runs)} of {len(runs)} runs to do"
    if expected.runs:
        waiting += f", {jobs} at a time: about {duration(expected.together(jobs))} (from {expected.basis})"
    plan = model.Table(
        title=f"{table.title}; scale {scale.name}{', a REDUCED protocol' if scale.reduced else ''}",
        corner="run",
        columns=[
            *model.words("method", "changed settings"),
            *model.numbers("seed"),
            *model.words("state"),
            *model.numbers("about"),
            *model.words("folder"),
        ],
        rows=[_planned(run, expected.seconds.get(run.name)) for run in runs],
        notes=[waiting],
    )
    show(plan, width=WIDTH)


def _planned(run: PlannedRun, seconds: float | None) -> model.Row:
    changes = " ".join(f"{name}={setting_text(value)}" for name, value in run.changes.items())
    about = model.Cell("" if seconds is None else duration(seconds), seconds)
    described = model.texts(_what(run), changes)
    state, folder = model.texts(_state(run), str(run.folder))
    return model.Row(run.name, [*described, model.Cell(str(run.seed), run.seed), state, about, folder])


def figures_command(table: Table, folder: Path, runs: Sequence[PlannedRun]) -> str:
    """What draws the figures of the runs of the first seed; they are of one benchmark at a time."""
    benchmark, *others = table.benchmarks
    shown = [run.folder for run in runs if run.seed == 0 and run.benchmark.name == benchmark]
    elsewhere = [place for place in shown if place.parent != folder]
    inside = f"{shlex.quote(str(folder))}/{benchmark if others else ''}*-0"  # unquoted: the shell finds the folders
    out = folder / "figures" / benchmark if others else folder / "figures"
    given = [inside] * (len(elsewhere) < len(shown)) + [shlex.quote(str(place)) for place in elsewhere]
    likewise = f"  (likewise for {', '.join(others)})" if others else ""
    return f"onedomain figures {' '.join(given)} --out {shlex.quote(str(out))}{likewise}"


def plan_as_json(
    table: Table, scale: Scale, runs: Sequence[PlannedRun], expected: Estimate, jobs: int
) -> dict[str, Any]:
    return {
        "table": table.name,
        "benchmarks": list(table.benchmarks),
        "scale": scale.name,
        "reduced": scale.reduced,
        "jobs": jobs,
        "runs": [
            {
                "run": run.name,
                "benchmark": run.benchmark.name,
                "method": run.row.adaptation.method if run.row.adaptation else run.row.method,
                "parent": run.parent.name if run.parent else None,
                "target": run.target or None,
                "shots": run.row.adaptation.shots if run.row.adaptation else None,
                "network": run.benchmark.network,
                "settings": run.method.settings.model_dump(mode="json"),
                "seed": run.seed,
                "folder": str(run.folder),
                "state": run.state,
                "steps_done": run.steps_done,
                "seconds": expected.seconds.get(run.name, 0.0),
            }
            for run in runs
        ],
        "seconds": expected.together(jobs),
        "estimated_from": expected.basis,
    }


def _what(run: PlannedRun) -> str:
    adapting = run.row.adaptation
    return run.row.method if adapting is None else f"{adapting.method}, {adapting.shots} shots of {run.target}"


def _state(run: PlannedRun) -> str:
    return f"going on from {run.steps_done:,}" if run.state == "going on" else run.state
