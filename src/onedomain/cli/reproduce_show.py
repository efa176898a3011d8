"""What a person reads of a plan and of a table in the terminal."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from onedomain.data.progress import duration
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.estimate import Estimate
from onedomain.reporting.reproduce.formats import blocks, lines, remarks, title
from onedomain.reporting.reproduce.plan import PlannedRun
from onedomain.reporting.reproduce.result import Result
from onedomain.runs.commandline import setting_text

STYLES = {"section": "bold", "ours": "", "paper": "italic dim", "difference": "dim"}


def _console() -> Console:
    # Names of files and folders are shown as they are: no markup, no emoji. A pipe or a file has room.
    width = None if sys.stdout.isatty() else 160
    return Console(width=width, markup=False, emoji=False, highlight=False)


def show_result(result: Result) -> None:
    console = _console()
    for number, block in enumerate(blocks(result)):
        heading = None if number else title(result)
        table = RichTable(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for place, name in enumerate(block.headings):
            table.add_column(name, justify="right" if place else "left")
        for kind, texts in lines(result, block):
            label = texts[0] if kind in ("section", "ours") else f"  {texts[0]}"
            table.add_row(label, *texts[1:], style=STYLES[kind])
        console.print(table)
    for remark in remarks(result):
        console.print(remark, soft_wrap=True)


def show_plan(table: Table, scale: Scale, runs: Sequence[PlannedRun], expected: Estimate, jobs: int) -> None:
    heading = f"{table.title}; scale {scale.name}{', a REDUCED protocol' if scale.reduced else ''}"
    shown = RichTable(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "method", "changed settings", "seed", "state", "about", "folder"):
        shown.add_column(name, overflow="fold", justify="right" if name in ("seed", "about") else "left")
    for run in runs:
        changes = " ".join(f"{name}={setting_text(value)}" for name, value in run.changes.items())
        seconds = expected.seconds.get(run.name)
        about = "" if seconds is None else duration(seconds)
        shown.add_row(run.name, _what(run), changes, str(run.seed), _state(run), about, str(run.folder))
    console = _console()
    console.print(shown)
    waiting = f"{len(expected.runs)} of {len(runs)} runs to do"
    if expected.runs:
        waiting += f", {jobs} at a time: about {duration(expected.together(jobs))} (from {expected.basis})"
    console.print(waiting)


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
