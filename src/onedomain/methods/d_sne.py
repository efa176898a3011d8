"""d-SNE, single-source: the farthest sample of the own class should be nearer than the nearest of another one."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.contrastive import nearest_other_loss
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings


class DSNESettings(Settings):
    weight: float = Field(0.25, ge=0, le=1, description="w, share of the loss over pairs (released code: 0.25)")
    margin: float = Field(1.0, gt=0, description="m, by how much, in squared distance (released code: 1)")


class DSNE(LossMethod):
    """Domain adaptation using stochastic neighbourhood embedding: (1 − w)·L_task + w·L_pairs.

    Made for pairs across two domains; with a single source the pairs are those inside a class-balanced batch, which is
    this library's reading.
    """

    Settings = DSNESettings
    settings: DSNESettings
    summary = "The farthest of the own class nearer than the nearest of another, in the embedding space."
    citation = "Xu et al., d-SNE: Domain Adaptation using Stochastic Neighborhood Embedding, CVPR 2019"
    cost = 1.0
    needs_embedding = True
    balanced = True
    dense = False

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        logits, z = self.network.embed(batch.images)
        task = task_loss(logits, batch.labels).mean()
        pairs = nearest_other_loss(z.flatten(1), batch.labels, self.settings.margin)
        return {"loss": (1 - self.settings.weight) * task + self.settings.weight * pairs, "task": task, "pairs": pairs}
