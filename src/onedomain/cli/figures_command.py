"""`onedomain figures`: draw all that the runs have records for, and say what was left out and why."""

from __future__ import annotations

import json as json_format

from onedomain.cli.recipes import completed
from onedomain.data.progress import say, work_in_parts
from onedomain.reporting.figures import figures_for, save
from onedomain.runs.records import common_benchmark, read_runs


def figures(folders: list[str], out: str, benchmark: str | None, json: bool) -> None:
    runs = [completed(run) for run in read_runs(folders)]
    chosen = common_benchmark(runs, benchmark)
    with work_in_parts("draw") as tell:
        drawn = figures_for(runs, chosen, tell)
    files = {each.name: [str(path) for path in save(each.figure, out, each.name)] for each in drawn}
    if json:
        rows = [{"name": d.name, "title": d.title, "explanation": d.explanation, "files": files[d.name]} for d in drawn]
        left_out = [{"name": name, "reason": reason} for name, reason in drawn.skipped]
        print(json_format.dumps({"benchmark": chosen, "figures": rows, "left_out": left_out}, indent=2))
        return
    for each in drawn:
        print(f"{', '.join(files[each.name])}: {each.title}")
    for name, reason in drawn.skipped:
        say(f"left out: {name}: {reason}")
