"""`onedomain figures`: all figures that the runs have records for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from onedomain.cli import options as shared

GROUP = shared.RESULTS


@dataclass(frozen=True)
class Options:
    runs: shared.RunFolders
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for the figures.")]
    benchmark: shared.BenchmarkName = None
    json: shared.Json = False


def figures(options: Options) -> None:
    """Draw figures of one or several runs, as SVG and PNG, from their records alone.

    --benchmark says on whose domains; by default the first that all runs were scored on.
    """
    import json

    from onedomain.data.progress import say, work_in_parts
    from onedomain.reporting.figures import figures_for, save
    from onedomain.runs.records import common_benchmark, read_runs

    runs = read_runs(options.runs)
    chosen = common_benchmark(runs, options.benchmark)
    with work_in_parts("draw") as tell:
        drawn = figures_for(runs, chosen, tell)
    files = {each.name: [str(path) for path in save(each.figure, options.out, each.name)] for each in drawn}
    if options.json:
        rows = [{"name": d.name, "title": d.title, "explanation": d.explanation, "files": files[d.name]} for d in drawn]
        left_out = [{"name": name, "reason": reason} for name, reason in drawn.skipped]
        print(json.dumps({"benchmark": chosen, "figures": rows, "left_out": left_out}, indent=2))
        return
    for each in drawn:
        print(f"{', '.join(files[each.name])}: {each.title}")
    for name, reason in drawn.skipped:
        say(f"left out: {name}: {reason}")
