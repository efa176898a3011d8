"""`od.fit`: training, with the name of a benchmark looked up first."""

from __future__ import annotations

from functools import wraps
from typing import Any

from onedomain.benchmarks.catalogue import known_benchmark
from onedomain.training import fit as training
from onedomain.training.run import Run


@wraps(training.fit)
def fit(*given: Any, benchmark: str | None = None, **options: Any) -> Run:
    if isinstance(benchmark, str):
        known_benchmark(benchmark)
    return training.fit(*given, benchmark=benchmark, **options)
