"""`onedomain reproduce`: plan the grid of a table, run what is not there, print and keep the table."""

from __future__ import annotations

from dataclasses import dataclass

from onedomain.cli import options as shared
from onedomain.errors import UserError, unknown

GROUP = shared.RESULTS


@dataclass(frozen=True)
class Options:
    name: str = shared.argument(
        "NAME",
        "digits, efficiency, ablation, curves, segmentation, few-shot, cifar-severity, "
        "cifar-corruptions, office-caltech or pacs.",
        complete="reporting.reproduce.tables:TABLES",
    )
    scale: str = shared.option(
        "--scale quick|full", "A reduced protocol, or the whole one (many hours).", default="quick"
    )
    seeds: int = shared.option("--seeds", "How many: 3 are the seeds 0, 1 and 2.", default=3)
    recipe: str | None = shared.recipe()
    out: str | None = shared.option("--out DIR", "Folder for runs and table. [runs/reproduce/NAME-SCALE]")
    records: list[str] | None = shared.option("--from FILE", "Make the table from records alone, no run; repeatable.")
    dry_run: bool = shared.option("--dry-run", "Show the runs and how long they take, run none.", default=False)
    jobs: int | None = shared.jobs()
    use: list[str] | None = shared.option(
        "--use DIR", "Take finished ones with the same settings from here; repeatable.", group=shared.RUNS
    )
    on: str = shared.on()
    address: str | None = shared.address()
    cpus_per_run: int | None = shared.cpus_per_run()
    gpus_per_run: float | None = shared.gpus_per_run()
    data: str | None = shared.data()
    device: str | None = shared.device()
    json: bool = shared.json()


def reproduce(options: Options) -> None:
    """Make a table of the paper: run its grid, and print the paper's numbers beside ours.

    Runs that are finished are not repeated; killed or stopped, the same command goes on.
    """
    from onedomain.reporting.reproduce.tables import SCALES, TABLES

    for field, name, known in (("table", options.name, TABLES), ("--scale", options.scale, SCALES)):
        if name not in known:
            raise unknown(field, name, known)
    if options.records and (options.dry_run or options.use):
        raise UserError("--from", f"given together with {'--dry-run' if options.dry_run else '--use'}", "one of them")
    from onedomain.cli import reproduce_show
    from onedomain.reporting.reproduce.grid import Request

    how = {name: getattr(options, name) for name in ("seeds", "recipe", "out", "jobs", "data", "device")}
    how |= {"use": tuple(options.use or ()), "cluster": shared.cluster(options)}
    request = Request(TABLES[options.name], SCALES[options.scale], **how)
    if options.records:
        reproduce_show.from_records(request, options.records, options.json)
    elif options.dry_run:
        reproduce_show.show_what_would_be_done(request, options.json)
    else:
        reproduce_show.run_and_show(request, options.json)
