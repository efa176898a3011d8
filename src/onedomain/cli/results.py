"""Commands that make tables, figures and pages of finished runs; what each does is in its room's `command.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from onedomain.cli.options import BenchmarkName, Data, Device, Json
from onedomain.errors import UserError


def _table_names() -> list[str]:
    from onedomain.reporting.reproduce.tables import TABLES

    return list(TABLES)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=_table_names,
            help="digits, efficiency, ablation, curves, segmentation, few-shot, cifar-severity or cifar-corruptions.",
        ),
    ],
    scale: Annotated[
        str,
        typer.Option("--scale", metavar="quick|full", help="A reduced protocol, or the whole one (many hours)."),
    ] = "quick",
    seeds: Annotated[int, typer.Option("--seeds", help="How many: 3 are the seeds 0, 1 and 2.")] = 3,
    out: Annotated[
        str | None, typer.Option("--out", help="Folder for runs and table. [runs/reproduce/NAME-SCALE]")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Runs at a time; as many as cores by default.")
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option("--use", metavar="DIR", help="Take finished runs with the same settings from here; repeatable."),
    ] = None,
    records: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="FILE", help="Make the table from records alone, no run; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and how long they take, run none.")] = False,
    data: Data = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Make a table of the paper: run its grid, and print the paper's numbers beside ours.

    Runs that are finished are not repeated; killed or stopped, the same command goes on.
    """
    from onedomain.reporting.reproduce.tables import find_scale, find_table

    table, chosen = find_table(name), find_scale(scale)
    if records and (dry_run or use):
        raise UserError("--from", f"given together with {'--dry-run' if dry_run else '--use'}", "one of them")
    from onedomain.cli import reproduce_command as command

    request = command.Request(table, chosen, seeds, out, jobs, tuple(use or ()), data, device)
    if records:
        command.from_records(request, records, json)
    elif dry_run:
        command.show_what_would_be_done(request, json)
    else:
        command.reproduce(request, json)


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders; files among them are passed over.")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")] = "report.html",
) -> None:
    """Write one self-contained HTML page of runs: who holds up where, and who knows when not."""
    from onedomain.cli import report_command as command

    command.report(runs, out)


def figures(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders, as `train` makes them.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for the figures.")],
    benchmark: BenchmarkName = None,
    json: Json = False,
) -> None:
    """Draw figures of one or several runs, as SVG and PNG, from their records alone.

    --benchmark says on whose domains; by default the first that all runs were scored on.
    """
    from onedomain.cli import figures_command as command

    command.figures(runs, out, benchmark, json)
