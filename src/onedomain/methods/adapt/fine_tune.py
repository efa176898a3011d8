"""Fine-tuning: cross-entropy on the drawn images, from the weights of the trained run."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field

from onedomain.components.descent import descend
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.adapt.base import Adaptation, ShotsSettings


class FineTuneSettings(ShotsSettings):
    """The paper gives rate and batch size, and of the number of steps only that it is small."""

    steps: int = Field(0, ge=0, le=10**9, description="training steps; 0: as many as make up the epochs")
    epochs: int = Field(100, ge=1, description="passes over the drawn images: fixed in advance, see docs/adaptation.md")
    batch_size: int = Field(16, ge=1, le=2**16, description="images per step (paper: 16)")
    learning_rate: float = Field(1e-4, gt=0, description="Adam's rate (paper: 1e-4)")
    checkpoint_every: int = Field(200, ge=1, description="steps between two checkpoints")
    log_every: int = Field(10, ge=1, description="steps that one line of metrics.jsonl averages over")


class FineTune(Adaptation):
    """All weights go on from where training left them, on the target's few images alone (section 7.4)."""

    Settings = FineTuneSettings
    settings: FineTuneSettings
    summary = "Cross-entropy on a few labelled target images."
    citation = "Peng, Qiao, Zhao, Out-of-Domain Generalization from a Single Source, section 7.4"

    def planned(self, shots: int) -> dict[str, Any]:
        settings = self.settings
        steps = settings.steps or math.ceil(settings.epochs * shots / settings.batch_size)
        return {**settings.model_dump(), "steps": steps}

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        batch = self.shown(batch)
        loss = task_loss(self.network(batch.images), batch.labels, self.shots.void).mean()
        return descend(self.optimiser, loss, self.scaler)
