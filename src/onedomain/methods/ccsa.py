"""CCSA, single-source: samples of one class drawn together in the embedding space, those of two classes kept apart."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.contrastive import contrastive_loss
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings, search


class CCSASettings(Settings):
    weight: float = Field(
        0.25,
        ge=0,
        le=1,
        description="w, share of the loss over pairs (released code: 0.25)",
        json_schema_extra=search(0.05, 0.9),
    )
    margin: float = Field(
        1.0,
        gt=0,
        description="m, how far apart classes should lie (released code: 1)",
        json_schema_extra=search(0.1, 10, log=True),
    )


class CCSA(LossMethod):
    """Classification and contrastive semantic alignment: (1 − w)·L_task + w·L_pairs.

    Made for pairs across two domains; with a single source the pairs are those inside a class-balanced batch, which is
    this library's reading.
    """

    Settings = CCSASettings
    settings: CCSASettings
    summary = "Embeddings of one class drawn together, others apart."
    citation = "Motiian et al., Unified Deep Supervised Domain Adaptation and Generalization, ICCV 2017"
    cost = 1.0
    needs_embedding = True
    balanced = True
    dense = False

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        logits, z = self.network.embed(batch.images)
        task = task_loss(logits, batch.labels).mean()
        pairs = self.over_pairs(z.flatten(1), batch.labels)
        return {"loss": (1 - self.settings.weight) * task + self.settings.weight * pairs, "task": task, "pairs": pairs}

    def over_pairs(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """L_pairs of embeddings (N, D) and their classes."""
        return contrastive_loss(z, labels, self.settings.margin)
