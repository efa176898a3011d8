"""JiGen: besides the class, the network tells in which order an image's tiles were put together."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import nn

from onedomain.components.augmentations.jigsaw import GRID, TILES, distant_permutations, shuffle_tiles
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.errors import UserError
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings, search


class JiGenSettings(Settings):
    permutations: int = Field(30, ge=1, le=1000, description="orders of the tiles beside the right one (paper: 30)")
    jigsaw_weight: float = Field(
        0.7,
        ge=0,
        description="α, weight of the loss over orders (paper: 0.1 to 0.9)",
        json_schema_extra=search(0.1, 0.9),
    )
    shuffled: float = Field(
        0.4,
        gt=0,
        lt=1,
        description="share of the images that are shuffled (paper: 0.1 to 0.4)",
        json_schema_extra=search(0.1, 0.9),
    )


class JiGen(LossMethod):
    """Domain generalization by solving jigsaw puzzles: how the parts of an image lie does not depend on its domain.

    Ordered images have a class and the order 0; shuffled ones have an order alone.
    """

    Settings = JiGenSettings
    settings: JiGenSettings
    summary = "Solves 3×3 jigsaw puzzles beside telling the class."
    citation = "Carlucci et al., Domain Generalization by Solving Jigsaw Puzzles, CVPR 2019"
    cost = 1.0
    needs_embedding = True

    def new_head(self, images: torch.Tensor) -> nn.Module:
        _, height, width = self.image_shape
        if min(height, width) < GRID:
            allowed = f"at least {GRID}×{GRID}: an image is cut into {TILES} tiles"
            raise UserError("images", f"{height}×{width} pixels", allowed)
        self.network.module.eval()
        with torch.no_grad():
            _, z = self.network.embed(images)
        self.orders = torch.from_numpy(distant_permutations(self.settings.permutations + 1)).to(images.device)
        return nn.Linear(_pooled(z).shape[1], self.settings.permutations + 1).to(images.device)

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        count = len(batch.labels)
        chosen = torch.randint(1, len(self.orders), (count,), device=self.device)
        chosen = chosen * (torch.rand(count, device=self.device) < self.settings.shuffled)
        logits, z = self.network.embed(shuffle_tiles(batch.images, self.orders[chosen]))
        assert self.head is not None
        puzzle = task_loss(self.head(_pooled(z)), chosen).mean()
        ordered = (chosen == 0).to(z.dtype)
        per_image = task_loss(logits, batch.labels, self.source.void)
        task = (per_image * ordered).sum() / ordered.sum().clamp(min=1)
        return {"loss": task + self.settings.jigsaw_weight * puzzle, "task": task, "puzzle": puzzle}


def _pooled(z: torch.Tensor) -> torch.Tensor:
    """z as one vector per sample: maps are averaged."""
    return z if z.dim() == 2 else z.flatten(2).mean(2)
