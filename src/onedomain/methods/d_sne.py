"""d-SNE, single-source: the farthest sample of the own class should be nearer than the nearest of another one."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.contrastive import nearest_other_loss
from onedomain.methods.ccsa import CCSA, CCSASettings
from onedomain.settings import search


class DSNESettings(CCSASettings):
    margin: float = Field(
        1.0,
        gt=0,
        description="m, by how much, in squared distance (released code: 1)",
        json_schema_extra=search(0.1, 10, log=True),
    )


class DSNE(CCSA):
    """Domain adaptation using stochastic neighbourhood embedding: as CCSA, with another loss over the pairs."""

    Settings = DSNESettings
    settings: DSNESettings
    summary = "The nearest other class beyond the farthest own one."
    citation = "Xu et al., d-SNE: Domain Adaptation using Stochastic Neighborhood Embedding, CVPR 2019"

    def over_pairs(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nearest_other_loss(z, labels, self.settings.margin)
