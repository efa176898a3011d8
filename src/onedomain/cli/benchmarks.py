"""`onedomain benchmarks`: what runs are trained and scored on."""

from __future__ import annotations

from dataclasses import dataclass

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

GROUP = shared.AVAILABLE


@dataclass(frozen=True)
class Options:
    json: bool = shared.json()


def benchmarks(options: Options) -> None:
    """List the benchmarks."""
    from onedomain.benchmarks import BENCHMARKS
    from onedomain.cli import tables

    told = ("name", "summary", "source", "targets", "network", "metric", "corruptions")
    rows = [{name: getattr(each, name) for name in told} for each in BENCHMARKS.values()]
    if options.json:
        print_json({"benchmarks": [{**row, "targets": list(row["targets"])} for row in rows]})
    else:
        tables.show_benchmarks()
