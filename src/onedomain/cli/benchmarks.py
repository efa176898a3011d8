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

    rows = [
        {
            "name": each.name,
            "summary": each.summary,
            "source": each.source,
            "targets": list(each.targets),
            "network": each.network,
            "metric": each.metric,
            "corruptions": each.corruptions,
        }
        for each in BENCHMARKS.values()
    ]
    if options.json:
        print_json({"benchmarks": rows})
    else:
        tables.show_benchmarks(rows)
