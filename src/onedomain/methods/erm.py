"""Empirical risk minimization: cross-entropy on the source, and nothing else."""

from __future__ import annotations

from typing import Any

import torch

from onedomain.data.domain import Batch, Domain
from onedomain.equations import task_loss
from onedomain.methods.base import Method, adam


class ERM(Method):
    """The baseline that every other method is measured against: minimise Eq. 2 over the source domain."""

    summary = "Cross-entropy on the source, without augmentation: the baseline."
    citation = "Vapnik, Statistical Learning Theory, 1998; Koltchinskii, Oracle Inequalities, 2011"

    def begin(self, source: Domain) -> None:
        self.void = source.void
        self.optimiser = adam(self.network.module, self.settings.learning_rate)

    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        loss = task_loss(self.network(batch.images), batch.labels, self.void).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return {"loss": loss.detach()}

    def state_dict(self) -> dict[str, Any]:
        return {"network": self.network.module.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.module.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
