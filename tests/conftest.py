"""Small data and a small network that everything can be tried on in milliseconds."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from onedomain import cli
from onedomain.data.domain import Domain
from onedomain.methods.base import Method, Setup
from onedomain.networks import NamedNetwork

torch.set_num_threads(1)
pytest_plugins = ["tests.adapting"]
ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("ONEDOMAIN_DATA") or ROOT.parent / "shared" / "data")


def set_up(
    method: Method, network: NamedNetwork, source: Domain, images: torch.Tensor | None = None, **given: object
) -> Method:
    """A method as it is just before its first step."""
    seen = source.batch(range(min(3, len(source)))).images if images is None else images
    method.set_up(Setup(network, seen, torch.device("cpu"), source, **given))
    return method


class TinyNet(nn.Module):
    """A network with convolution, BatchNorm and dropout, for 8×8 images of any number of channels."""

    def __init__(self, channels: int = 1, classes: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        pooled = self.pool(torch.relu(self.norm(self.conv(images))))
        return self.head(self.drop(pooled.flatten(1)))


def make_tiny(count: int = 60, seed: int = 0, name: str = "tiny") -> Domain:
    """Three classes of 8×8 images that a network tells apart: which third of the image is bright."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = rng.integers(0, 90, (count, 8, 8, 1))
    for place, label in enumerate(labels):
        images[place, :, 3 * label : 3 * label + 2] += 120
    return Domain(name, "train", images.astype(np.uint8), labels, ("left", "middle", "right"))


@pytest.fixture
def tiny() -> Domain:
    return make_tiny()


@pytest.fixture
def tiny_net() -> TinyNet:
    torch.manual_seed(0)
    return TinyNet()


@pytest.fixture
def onedomain(monkeypatch, capsys):
    """Run a command in this process; its exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["onedomain", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return call


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, where there is one."""
    named = os.environ.get("ONEDOMAIN_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "digits" / "mnist.npz").exists():
        pytest.skip("no real data: set ONEDOMAIN_DATA to a folder with digits/mnist.npz")
    return folder


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(time, "monotonic", lambda: Clock.now)
    return Clock
