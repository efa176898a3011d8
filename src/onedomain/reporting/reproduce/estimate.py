"""How long the runs of a plan take: from what finished ones took or, with none, from a few steps of ERM."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from onedomain.methods import method_class
from onedomain.reporting.reproduce.plan import Bench, PlannedRun

if TYPE_CHECKING:
    from onedomain.methods.base import Method

SCORING_COST = 0.3  # time of scoring an image by that of an image in a step of ERM
MEASURED_STEPS = 5

Size = tuple[str, tuple[int, int, int]]  # a network, and height, width and channels of its images


@dataclass(frozen=True)
class Estimate:
    """What is to be run, in this order, the seconds that each takes by its name, and what that rests on."""

    runs: tuple[PlannedRun, ...]
    seconds: dict[str, float]
    basis: str

    def together(self, parallel: int) -> float:
        return makespan((self.seconds[run.name] for run in self.runs), parallel)


def estimate(runs: Sequence[PlannedRun], benches: Mapping[str, Bench]) -> Estimate:
    """Methods' costs are relative to ERM's. One seed of everything comes first, in a seed the longest run.

    What is adapted comes after all that is trained.
    """
    taken: dict[Size, list[float]] = {}
    for run in runs:
        if run.state == "done" and run.records:
            bench = benches[run.benchmark.name]
            of_any_domain = next(iter(run.records.scores(run.benchmark.name).values()))
            took = next(iter(of_any_domain.values()))["train_seconds"]
            taken.setdefault(_size(bench), []).append(took / _work(run.method, len(bench.source)))
    steps = {size: median(times) for size, times in taken.items()}
    finished = [f"finished runs: {sum(map(len, taken.values()))}"] if taken else []
    seconds, measured = {}, []
    for run in runs:
        if run.state != "done":
            bench = benches[run.benchmark.name]
            if _size(bench) not in steps:
                batch = method_class("erm")(**bench.benchmark.settings_of("erm")).settings.batch_size
                timed = _measured_step(bench, batch)
                steps[_size(bench)] = timed * 32 / batch
                measured.append(f"{MEASURED_STEPS} steps of ERM, {1e3 * timed:.0f} ms each")
            scored = sum(map(len, bench.scored.values())) * (2 if run.parent else 1)  # the parent as well
            scoring = SCORING_COST * scored / 32
            left = 0.0 if run.state == "to score" else 1 - run.steps_done / run.method.settings.steps
            seconds[run.name] = steps[_size(bench)] * (left * _work(run.method, len(bench.source)) + scoring)
    basis = "; ".join([*finished, *measured])
    waiting = sorted(
        (run for run in runs if run.name in seconds),
        key=lambda run: (run.parent is not None, run.seed, -seconds[run.name]),
    )
    return Estimate(tuple(waiting), seconds, basis)


def makespan(seconds: Iterable[float], parallel: int) -> float:
    """When the last of several runs ends, so many at a time, each begun by the first place that is free.

    >>> makespan([5.0, 4.0, 3.0], 2)
    7.0
    """
    free = [0.0] * parallel
    for each in seconds:
        free[free.index(min(free))] += each
    return max(free)


def _work(method: Method, images: int) -> float:
    """A run's training in steps of ERM with 32 images."""
    settings = method.settings
    return settings.steps * (method.cost or 1.0) * settings.batch_size / 32 + method.preparation_cost(images)


def _size(bench: Bench) -> Size:
    """Benchmarks that have it in common take as long for a step."""
    return bench.benchmark.network, bench.source.image_shape


def _measured_step(bench: Bench, batch_size: int) -> float:
    """Seconds of a step of ERM on this machine as it is now, on as many threads as torch may use."""
    import torch

    from onedomain.methods.base import Setup
    from onedomain.networks import build_network
    from onedomain.training.randomness import private_randomness

    erm = method_class("erm")()
    with private_randomness():
        network = build_network(bench.benchmark.network, len(bench.source.classes), bench.source.image_shape)
        batch = bench.source.batch([place % len(bench.source) for place in range(batch_size)])
        erm.set_up(Setup(network, batch.images, torch.device("cpu"), bench.source))
        times = []
        for step in range(2 + MEASURED_STEPS):  # the first ones are slower
            begun = time.perf_counter()
            erm.step(batch, step)
            times.append(time.perf_counter() - begun)
    return median(times[2:])
