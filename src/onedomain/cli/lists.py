"""What there is to choose from."""

from __future__ import annotations

from onedomain.cli.options import Json


def methods(json: Json = False) -> None:
    """List the methods."""
    from onedomain import commands

    commands.list_methods(json)


def benchmarks(json: Json = False) -> None:
    """List the benchmarks."""
    from onedomain import commands

    commands.list_benchmarks(json)
