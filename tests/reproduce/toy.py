"""A benchmark of a few images, that a whole grid can be run on in seconds."""

from __future__ import annotations

import time

import numpy as np

from onedomain.benchmarks import BENCHMARKS, Benchmark
from onedomain.data.domain import Domain


def blocks(count: int, seed: int, name: str) -> Domain:
    """Noise with a bright third, which is the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = rng.integers(0, 100, (count, 32, 32, 3))
    for place, label in enumerate(labels):
        images[place, :, 10 * label : 10 * label + 10] += 120
    return Domain(name, "test", images.astype(np.uint8), labels, ("left", "middle", "right"))


BENCHMARK = Benchmark(
    name="toy",
    summary="for tests",
    source="blocks",
    network="lenet",
    train=lambda data: blocks(60, 0, "blocks"),
    held_out=lambda data: blocks(30, 1, "blocks"),
    calibration=lambda data: blocks(30, 1, "blocks"),
    targets={"near": lambda data: blocks(30, 2, "near"), "far": lambda data: blocks(30, 3, "far")},
    settings={"erm": {"steps": 200, "batch_size": 4, "log_every": 5}},
)


def register() -> None:
    BENCHMARKS["toy"] = BENCHMARK


def slow_down() -> None:
    """ERM with a pause in every step."""
    from onedomain.methods.erm import ERM

    step = ERM.step

    def slow_step(method, batch):
        time.sleep(0.02)
        return step(method, batch)

    ERM.step = slow_step
