"""What there is to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onedomain.cli.options import Json

if TYPE_CHECKING:
    from onedomain.methods.base import Method


def methods(json: Json = False) -> None:
    """List the methods."""
    import json as json_format

    from onedomain.cli import tables
    from onedomain.methods import method_class, method_names
    from onedomain.methods.adapt import adaptation_class, adaptation_names

    found = [_described(name, method_class(name)) for name in method_names()]
    adaptations = [_described(name, adaptation_class(name)) for name in adaptation_names()]
    if json:
        print(json_format.dumps({"methods": found, "adaptations": adaptations}, indent=2))
    else:
        tables.show_methods("method", found)
        tables.show_methods("adapt --method", adaptations)


def _described(name: str, kind: type[Method]) -> dict[str, Any]:
    settings = {
        field: {"default": info.default, "what": info.description} for field, info in kind.Settings.model_fields.items()
    }
    row = {"name": name, "summary": kind.summary, "citation": kind.citation, "cost": kind.cost}
    return {**row, "settings": settings}


def benchmarks(json: Json = False) -> None:
    """List the benchmarks."""
    import json as json_format

    from onedomain.benchmarks import BENCHMARKS
    from onedomain.cli import tables

    rows = [
        {
            "name": b.name,
            "summary": b.summary,
            "source": b.source,
            "targets": list(b.targets),
            "network": b.network,
            "metric": b.metric,
            "corruptions": b.corruptions,
        }
        for b in BENCHMARKS.values()
    ]
    if json:
        print(json_format.dumps({"benchmarks": rows}, indent=2))
    else:
        tables.show_benchmarks(rows)
