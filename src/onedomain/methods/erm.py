"""Empirical risk minimization: cross-entropy on the source, and nothing else."""

from __future__ import annotations

import torch

from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod


class ERM(LossMethod):
    """The baseline that every other method is measured against: minimise Eq. 2 over the source domain."""

    summary = "Plain training on the source: the baseline."
    citation = "Vapnik, Statistical Learning Theory, 1998; Koltchinskii, Oracle Inequalities, 2011"
    cost = 1.0

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {"loss": task_loss(self.network(batch.images), batch.labels, self.source.void).mean()}
