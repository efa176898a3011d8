"""Records made by hand, as runs would have written them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onedomain.benchmarks import find_benchmark
from onedomain.reporting.reproduce.declare import Row, Scale, Table
from onedomain.reporting.reproduce.plan import configured
from onedomain.training.begin import set_otherwise
from tests.corrupted import keys_of


def records(
    table: Table, scale: Scale, row: Row, seed: int, accuracies: Mapping[str, float], **changes: Any
) -> list[dict[str, Any]]:
    """The records of one run: the table's metric and another one of each domain, and one of a made domain."""
    benchmark = row.benchmark or table.benchmarks[0]
    where = find_benchmark(benchmark)
    method, _ = configured(row, scale, where)
    common = {
        "onedomain": "0.1.0",
        "method": row.method,
        "benchmark": benchmark,
        "trained_on": benchmark,
        "seed": seed,
        "steps": method.settings.steps,
        "settings": method.settings.model_dump(mode="json"),
        "usually": set_otherwise(method, where.settings_of(row.method)),
        "source": "s0",
        "training_parameters": 7_024_958,
        "train_seconds": 90.0 + 60 * seed,
        "peak_memory_mb": 900,
        "environment": {"python": "3.11.2", "torch": "2.9.1"},
        **changes,
    }
    rows = [
        {"domain": domain, "metric": metric, "value": value, "count": 100, "note": "", "data": f"of {domain}"}
        | keys_of(domain)
        | common
        for domain, accuracy in accuracies.items()
        for metric, value in {table.metric: accuracy, "nll": 1.0}.items()
    ]
    return [*rows, {"domain": "augmented-1", "metric": "w_c", "value": 0.1, **common}]
