"""Fine-tuning: cross-entropy on the drawn images, from the weights of the trained run."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field

from onedomain.adaptation.base import Adaptation
from onedomain.augmentation.lighting import relit
from onedomain.augmentation.movement import moved
from onedomain.data.domain import Batch, Domain
from onedomain.equations import task_loss
from onedomain.settings import Settings

# How far `vary` = 1 changes an image at most: what `moved` and `relit` take.
TURN, ZOOM, SHEAR, SHIFT = 20.0, 0.25, 0.2, 0.1
CONTRAST, BRIGHTNESS = 0.4, 0.15


class FineTuneSettings(Settings):
    """The paper gives rate and batch size, and of the number of steps only that it is small."""

    steps: int = Field(0, ge=0, le=10**9, description="training steps; 0: as many as make up the epochs")
    epochs: int = Field(100, ge=1, description="passes over the drawn images: fixed in advance, see docs/adaptation.md")
    vary: float = Field(
        0.0, ge=0, le=4, description="how far drawn images are moved and relit at every step; 0: as they are (paper)"
    )
    invert: float = Field(0.0, ge=0, le=1, description="chance of a drawn image to have bright for dark (paper: 0)")
    batch_size: int = Field(16, ge=1, le=2**16, description="images a step (paper: 16)")
    learning_rate: float = Field(1e-4, gt=0, description="Adam's rate (paper: 1e-4)")
    checkpoint_every: int = Field(200, ge=1, description="steps between two checkpoints")
    log_every: int = Field(10, ge=1, description="steps that one line of metrics.jsonl averages over")


class FineTune(Adaptation):
    """All weights go on from where training left them, on the target's few images alone (section 7.4)."""

    Settings = FineTuneSettings
    settings: FineTuneSettings
    summary = "Cross-entropy on a few labelled target images, from the weights of the run."
    citation = "Peng, Qiao, Zhao, Out-of-Domain Generalization from a Single Source, section 7.4"

    def planned(self, shots: int) -> dict[str, Any]:
        settings = self.settings
        steps = settings.steps or math.ceil(settings.epochs * shots / settings.batch_size)
        return {**settings.model_dump(), "steps": steps}

    def begin(self, source: Domain) -> None:
        super().begin(source)
        self.value_range = self.shots.value_range

    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        batch = self.varied(batch)
        loss = task_loss(self.network(batch.images), batch.labels, self.shots.void).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return {"loss": loss.detach()}

    def varied(self, batch: Batch) -> Batch:
        """The same things from elsewhere and in another light: so few images would else be learned by heart."""
        vary, invert = self.settings.vary, self.settings.invert
        if vary > 0:
            batch = moved(batch, turn=TURN * vary, zoom=ZOOM * vary, shear=SHEAR * vary, shift=SHIFT * vary)
        if vary > 0 or invert > 0:
            lit = relit(
                batch.images,
                contrast=CONTRAST * vary,
                brightness=BRIGHTNESS * vary,
                inverted=invert,
                within=self.value_range,
            )
            batch = Batch(lit, batch.labels)
        return batch
