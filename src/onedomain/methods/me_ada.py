"""ME-ADA: adversarial augmentation whose images also climb the entropy of the prediction."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.equations import mean_over_pixels
from onedomain.methods.gud import GUD, GUDSettings
from onedomain.settings import search


class MEADASettings(GUDSettings):
    entropy_weight: float = Field(
        1.0,
        ge=0,
        description="β, weight of the entropy that an image climbs; 0 is GUD",
        json_schema_extra=search(0.1, 10, log=True),
    )


class MEADA(GUD):
    """Maximum-entropy adversarial data augmentation: GUD on L_task + β·H(ŷ) − γ·L_const.

    The entropy, a regulariser from the information bottleneck, draws images to where the network is unsure.
    """

    Settings = MEADASettings
    settings: MEADASettings
    summary = "GUD, whose images also climb the entropy."
    citation = "Zhao et al., Maximum-Entropy Adversarial Data Augmentation, NeurIPS 2020"
    cost = 1.0

    def objective(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        entropy = mean_over_pixels(prediction_entropy(logits), labels, self.source.void)
        return super().objective(logits, labels) + self.settings.entropy_weight * entropy


def prediction_entropy(logits: torch.Tensor) -> torch.Tensor:
    """H(ŷ) of each sample, in nats, (N,); of dense outputs that of each pixel, (N, H, W).

    >>> prediction_entropy(torch.zeros(1, 4))
    tensor([1.3863])
    """
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
