"""Options and arguments that several commands share, and what the shell completes them to."""

from __future__ import annotations

from typing import Annotated

import typer


def benchmark_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return list(BENCHMARKS)


BenchmarkName = Annotated[
    str | None, typer.Option("--benchmark", "-b", autocompletion=benchmark_names, help="See `benchmarks`.")
]
RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, as `train` makes it.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Training steps; each method has its own default.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a setting (`onedomain methods`); may be repeated."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.")]
Data = Annotated[str | None, typer.Option("--data", metavar="DIR", help="Where the data sets lie. [ONEDOMAIN_DATA]")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps; the fastest there is by default.")]
Threads = Annotated[int | None, typer.Option("--threads", help="CPU threads; all cores by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
