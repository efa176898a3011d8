"""Random numbers: each step has its own, and the caller's stay as they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_everything(seed: int, step: int) -> None:
    """Give this step its own random numbers, also in a user's dataset and layers."""
    number = int(np.random.SeedSequence([seed, step + 1]).generate_state(1)[0])
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 (a user's transforms may use the global generator)
    torch.manual_seed(number)


@contextmanager
def private_randomness() -> Iterator[None]:
    """Leave the caller's random number generators as they were."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, random numbers that follow from a run's seed; the caller's are left alone."""
    with private_randomness():
        seed_everything(seed, step=-1)
        yield


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Same seed, same machine, same weights: CPU kernels are so anyway, CUDA's must be asked."""
    if device.type != "cuda":
        yield
        return
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
