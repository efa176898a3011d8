"""`onedomain benchmarks`: what runs are trained and scored on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onedomain.cli import options as shared

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
        print(json.dumps({"benchmarks": rows}, indent=2))
    else:
        tables.show_benchmarks(rows)
