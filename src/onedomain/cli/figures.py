"""`onedomain figures`: all figures that the runs have records for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onedomain.cli import options as shared
from onedomain.cli.output import print_json, tell

GROUP = shared.RESULTS


@dataclass(frozen=True)
class Options:
    runs: list[str] = shared.run_folders()
    out: str = shared.option("--out DIR", "Folder for the figures.", default=shared.REQUIRED)
    benchmark: str | None = shared.benchmark()
    json: bool = shared.json()


def figures(options: Options) -> None:
    """Draw figures of one or several runs, as SVG and PNG, from their records alone.

    --benchmark says on whose domains; by default the first that all runs were scored on.
    """
    from onedomain.data.folders import tidied
    from onedomain.data.progress import say, work_in_parts
    from onedomain.reporting.figures import figures_for, save
    from onedomain.runs.records import common_benchmark, read_runs

    runs = read_runs(options.runs)
    chosen = common_benchmark(runs, options.benchmark)
    with work_in_parts("draw") as update:
        drawn = figures_for(runs, chosen, update)
    with tidied(Path(options.out)):
        files = {each.name: [str(path) for path in save(each.figure, options.out, each.name)] for each in drawn}
    if options.json:
        rows = [{"name": d.name, "title": d.title, "explanation": d.explanation, "files": files[d.name]} for d in drawn]
        left_out = [{"name": name, "reason": reason} for name, reason in drawn.skipped]
        print_json({"benchmark": chosen, "figures": rows, "left_out": left_out})
        return
    for each in drawn:
        tell(f"{', '.join(files[each.name])}: {each.title}")
    for name, reason in drawn.skipped:
        say(f"left out: {name}: {reason}")
