"""A benchmark of a few images, that a whole grid can be run on in seconds."""

from __future__ import annotations

import time
from dataclasses import replace

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


TASKS = {
    name: replace(
        BENCHMARK,
        name=name,
        train=lambda data, seed=seed: blocks(60, seed, "blocks"),
        targets={"near": lambda data: blocks(30, 2, "near")},
        target_train={"near": lambda data: blocks(30, 4, "near")},
        settings={"erm": {"steps": 20, "batch_size": 4}},
    )
    for seed, name in enumerate(("toy-a", "toy-b"), start=10)
}


def register() -> None:
    BENCHMARKS.update({"toy": BENCHMARK, **TASKS})


def slow_down() -> None:
    """ERM and fine-tuning with a pause in every step."""
    from onedomain.methods.adapt.fine_tune import FineTune
    from onedomain.methods.erm import ERM

    def slowed(step):
        def slow_step(method, batch, number):
            time.sleep(0.02)
            return step(method, batch, number)

        return slow_step

    for kind in (ERM, FineTune):
        kind.step = slowed(kind.step)
