"""A run on bright thirds of an image, and a target where they are dim: a few images are enough to learn it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import onedomain as od
from onedomain.data.domain import Domain
from tests.conftest import TinyNet, make_tiny


def make_dim(count: int = 60, seed: int = 1, name: str = "dim") -> Domain:
    """The images of `make_tiny` at a fifth of their brightness, on a bright ground in the middle."""
    domain = make_tiny(count, seed, name)
    images = domain.images // 5
    images[:, :, 3:5] += 60  # what a run on the source takes for the class in the middle
    return replace(domain, images=images)


@pytest.fixture
def dim() -> Domain:
    return make_dim()


@pytest.fixture(scope="session")
def trained() -> od.Run:
    torch.manual_seed(0)
    method = od.ERM(learning_rate=1e-2)
    return od.fit(method, make_tiny(), network=TinyNet(), embedding="pool", steps=60, progress=False)


@pytest.fixture
def run(trained: od.Run) -> od.Run:
    return trained
