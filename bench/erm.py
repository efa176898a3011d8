"""An ERM step on the Digits LeNet, against a plain PyTorch loop: default memory layout, unfused Adam."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from bench.timing import compare
from onedomain.data.domain import Domain
from onedomain.methods.base import Setup
from onedomain.methods.erm import ERM
from onedomain.networks import build_network
from onedomain.training.loop import ShuffledBatches
from onedomain.training.randomness import seed_everything

BATCH = 32


def run() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (1000, 32, 32, 3), dtype=np.uint8)
    source = Domain("random", "train", images, rng.integers(0, 10, 1000), tuple("0123456789"))

    method = ERM(batch_size=BATCH)
    lenet = build_network("lenet", 10, (32, 32, 3))
    method.set_up(Setup(lenet, source.batch([0]).images, torch.device("cpu"), source))
    shuffled = ShuffledBatches(source.labels, BATCH, seed=0)
    step = 0

    def ours() -> None:
        nonlocal step
        seed_everything(0, step)
        method.step(source.batch(shuffled(step)), step)
        step += 1

    network = build_network("lenet", 10, (32, 32, 3)).module
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().float() / 255, torch.from_numpy(source.labels)
    )
    loader = iter(torch.utils.data.DataLoader(data, BATCH, sampler=torch.utils.data.RandomSampler(data, True, 10**6)))

    def textbook() -> None:
        batch, labels = next(loader)
        optimiser.zero_grad()
        functional.cross_entropy(network(batch), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    fast, slow = compare(ours, textbook)
    print(
        f"erm step, LeNet, batch {BATCH}, 1 thread: {1 / fast:.1f} steps/s; textbook {1 / slow:.1f} steps/s; "
        f"ratio {slow / fast:.2f}"
    )
