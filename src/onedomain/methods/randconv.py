"""RandConv: three randomly convolved views of each image, which must be answered alike."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.augmentations.random_convolution import mixed_with_original, random_convolution
from onedomain.components.equations import mean_over_pixels, task_loss
from onedomain.components.predictive import divergence_from_mean
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings, search

SIZES = (1, 3, 5, 7)  # of the kernels, as for the paper's RC_mix₁₋₇


class RandConvSettings(Settings):
    views: int = Field(3, ge=2, description="views of each image (paper: 3)")
    consistency: float = Field(
        10.0,
        ge=0,
        description="λ, weight of the consistency loss (paper, Digits: 10)",
        json_schema_extra=search(1, 30, log=True),
    )
    original: float = Field(
        0.5,
        ge=0,
        le=1,
        description="chance that a view is the image as it is (paper: 0.5)",
        json_schema_extra=search(0.1, 0.9),
    )
    mixing: bool = Field(
        True,
        description="mix each view with its image by a random share (paper: RC_mix)",
        json_schema_extra=search(among=(True, False)),
    )


class RandConv(LossMethod):
    """Random convolutions change texture and leave shape: what all views agree on is shape."""

    Settings = RandConvSettings
    settings: RandConvSettings
    summary = "Random convolutions as views to be answered alike."
    citation = "Xu et al., Robust and Generalizable Visual Representation Learning via Random Convolutions, ICLR 2021"
    cost = 3.4

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        views = self.settings.views
        logits = self.network(torch.cat([self.view(batch.images) for _ in range(views)]))
        labels = batch.labels.repeat(views, *[1] * (batch.labels.dim() - 1))
        task = task_loss(logits, labels, self.source.void).mean()
        apart = divergence_from_mean(logits.view(views, len(batch.images), *logits.shape[1:]))
        disagreement = mean_over_pixels(apart, batch.labels, self.source.void).mean()
        loss = task + self.settings.consistency * disagreement
        return {"loss": loss, "task": task, "consistency": disagreement}

    def view(self, images: torch.Tensor) -> torch.Tensor:
        changed = random_convolution(images, SIZES)
        if self.settings.mixing:
            changed = mixed_with_original(images, changed)
        keep = torch.rand(len(images), 1, 1, 1, device=images.device) < self.settings.original
        return torch.where(keep, images, changed)
