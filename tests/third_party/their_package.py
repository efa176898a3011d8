"""A package of somebody else: a method, an adaptation, a network and a benchmark, found by entry points alone."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import nn

import onedomain as od
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch, Domain
from onedomain.methods.adapt.base import Adaptation, ShotsSettings
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings


class TheirSettings(Settings):
    noise: float = Field(0.1, ge=0, description="deviation of the noise on the pixels")


class TheirMethod(LossMethod):
    """Cross-entropy on noisy images."""

    Settings = TheirSettings
    settings: TheirSettings
    summary = "Cross-entropy on noisy images."
    citation = "them"

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        noisy = batch.images + self.settings.noise * torch.randn_like(batch.images)
        return {"loss": task_loss(self.network(noisy), batch.labels, self.source.void).mean()}


class TheirAdaptationSettings(ShotsSettings):
    steps: int = Field(4, ge=1, description="training steps")


class TheirAdaptation(Adaptation):
    """Trains on the drawn images."""

    Settings = TheirAdaptationSettings
    settings: TheirAdaptationSettings
    summary = "Trains on the drawn images."
    citation = "them"

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        loss = task_loss(self.network(self.shown(batch).images), batch.labels).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return {"loss": loss.detach()}


class TheirNetwork(nn.Module):
    embedding = "pool"
    perturb = ("conv",)

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(image_shape[2], 8, 3)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(32, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(torch.relu(self.conv(images))).flatten(1))


def _blocks(count: int, seed: int, name: str) -> Domain:
    """Noise with a bright third, which is the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = rng.integers(0, 100, (count, 12, 12, 3))
    for place, label in enumerate(labels):
        images[place, :, 4 * label : 4 * label + 4] += 120
    return Domain(name, "train", images.astype(np.uint8), labels, ("left", "middle", "right"))


BENCHMARK = od.Benchmark(
    name="their-benchmark",
    summary="bright thirds",
    source="blocks",
    network="their-network",
    train=lambda data: _blocks(60, 0, "blocks"),
    held_out=lambda data: _blocks(30, 1, "blocks"),
    calibration=lambda data: _blocks(40, 2, "blocks"),
    targets={"others": lambda data: _blocks(30, 3, "others")},
    target_train={"others": lambda data: _blocks(30, 4, "others")},
    recipe={"steps": 5, "batch_size": 6, "learning_rate": 1e-2},
)
