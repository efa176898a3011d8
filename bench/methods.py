"""What a step of each method costs, relative to ERM: LeNet, 32 random images of 32×32, after the warm-up.

Making augmented domains (SDG, GUD, ME-ADA) comes on top: it is done between steps, a few times a run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from bench.timing import compare
from onedomain.data.domain import Domain
from onedomain.methods import method_class, method_names
from onedomain.methods.base import Setup
from onedomain.networks import build_network

BATCH = 32
SMALL = {  # domains made at once, of few images and by few steps: only the training step is timed
    "sdg": {"warm_up": 0, "domain_every": 1, "domain_size": 100, "ascent_steps": 1, "wae_epochs": 1},
    "gud": {"round_every": 1, "round_size": 100, "ascent_steps": 1},
    "me-ada": {"round_every": 1, "round_size": 100, "ascent_steps": 1},
    "uncertain-sdg": {"warm_up": 0},
}


def run() -> None:
    erm = stepper("erm")
    for name in method_names():
        if name != "erm":
            theirs, ours = compare(stepper(name), erm, rounds=9)
            stated = method_class(name).cost
            print(f"{name} step: {1e3 * theirs:.0f} ms, {theirs / ours:.1f} times ERM's (stated: {stated})")


def stepper(name: str) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 32, 32, 3), dtype=np.uint8)
    source = Domain("random", "train", images, rng.integers(0, 10, 200), tuple("0123456789"))
    method = method_class(name)(batch_size=BATCH, **SMALL.get(name, {}))
    batch = source.batch(range(BATCH))
    network = build_network("lenet", 10, (32, 32, 3))
    method.set_up(Setup(network, batch.images, torch.device("cpu"), source))
    for step in range(1, 8):  # all domains that there will be
        list(method.prepare(step))

    def once() -> None:
        method.network.module.train()
        method.step(batch, 8)

    return once
