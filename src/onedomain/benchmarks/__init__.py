"""Benchmarks: declarations, one file per family. `BENCHMARKS` has all of them by name."""

from onedomain.benchmarks.benchmark import Benchmark
from onedomain.benchmarks.catalogue import BENCHMARKS, family_of, find_benchmark, find_target, known_benchmark
from onedomain.benchmarks.few_shot import FEW_SHOT_DIGITS

__all__ = [
    "BENCHMARKS",
    "FEW_SHOT_DIGITS",
    "Benchmark",
    "family_of",
    "find_benchmark",
    "find_target",
    "known_benchmark",
]
