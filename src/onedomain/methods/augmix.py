"""AugMix: the image and two mixed augmentations of it must be answered alike."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.augmentations.augmix import augmix
from onedomain.components.equations import task_loss
from onedomain.components.predictive import divergence_from_mean
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings, search


class AugMixSettings(Settings):
    consistency: float = Field(
        12.0,
        ge=0,
        description="λ, weight of the Jensen–Shannon loss (paper: 12)",
        json_schema_extra=search(1, 30, log=True),
    )
    chains: int = Field(3, ge=1, description="chains that are mixed (paper: 3)")
    depth: int = Field(3, ge=1, description="longest chain (paper: 1 to 3, drawn)")
    severity: float = Field(
        0.3,
        gt=0,
        le=1,
        description="largest strength of an operation (paper: 3 of 10)",
        json_schema_extra=search(0.1, 0.6),
    )


class AugMix(LossMethod):
    """Class loss on the image itself, Jensen–Shannon divergence between it and two augmentations."""

    Settings = AugMixSettings
    settings: AugMixSettings
    summary = "Mixed chains of image operations, answered alike."
    citation = "Hendrycks et al., AugMix, ICLR 2020"
    cost = 3.4
    dense = False  # its operations move pixels

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        low, high = self.source.value_range
        unit = (batch.images - low) / (high - low)
        views = [self._mixed(unit) * (high - low) + low for _ in range(2)]
        logits = self.network(torch.cat([batch.images, *views]))
        logits = logits.view(3, len(unit), *logits.shape[1:])
        task = task_loss(logits[0], batch.labels, self.source.void).mean()
        disagreement = divergence_from_mean(logits).mean() / 3
        loss = task + self.settings.consistency * disagreement
        return {"loss": loss, "task": task, "consistency": disagreement}

    def _mixed(self, images: torch.Tensor) -> torch.Tensor:
        settings = self.settings
        return augmix(images, chains=settings.chains, depth=settings.depth, severity=settings.severity)
