"""CCSA in its own, two-domain form: pairs across source and target."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.contrastive import contrastive_loss
from onedomain.components.descent import descend
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.adapt.base import TwoDomains, TwoDomainSettings


class CCSASettings(TwoDomainSettings):
    weight: float = Field(0.25, ge=0, le=1, description="w, share of the pairs' loss (released code: 0.25)")
    margin: float = Field(1.0, gt=0, description="m, how far apart classes should lie (released code: 1)")


class CCSA(TwoDomains):
    """Classification and contrastive semantic alignment: (1 − w)·L_task + w·L_pairs.

    L_pairs takes every pair of a source and a target image of a step: those of one class are drawn together (semantic
    alignment), those of two classes kept a margin apart (separation). L_task is of both domains, in equal parts.
    """

    Settings = CCSASettings
    settings: CCSASettings
    summary = "From scratch: pairs of one class near across domains."
    citation = "Motiian et al., Unified Deep Supervised Domain Adaptation and Generalization, ICCV 2017"

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        target = self.beside(batch)
        count = len(batch.labels)
        logits, z = self.embed_both(batch, target)
        task = (task_loss(logits[:count], batch.labels).mean() + task_loss(logits[count:], target.labels).mean()) / 2
        pairs = contrastive_loss(z[:count], batch.labels, self.settings.margin, (z[count:], target.labels))
        loss = (1 - self.settings.weight) * task + self.settings.weight * pairs
        return descend(self.optimiser, loss, self.scaler, task=task, pairs=pairs)
