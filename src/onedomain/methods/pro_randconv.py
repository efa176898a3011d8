"""Pro-RandConv: the image, and the image after a small random block applied again and again."""

from __future__ import annotations

import torch
from pydantic import Field

from onedomain.components.augmentations.random_convolution import progressive_convolution
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.base import LossMethod
from onedomain.settings import Settings, search


class ProRandConvSettings(Settings):
    repeats: int = Field(
        10,
        ge=1,
        description="L, most repeats of a block; each step draws from 1 on (paper: 10)",
        json_schema_extra=search(3, 15),
    )
    offset: float = Field(
        0.2,
        ge=0,
        description="largest deviation of displaced points, pixels (paper, Digits: 0.2)",
        json_schema_extra=search(0, 0.5),
    )
    contrast: float = Field(
        0.5, ge=0, description="deviation of gain and bias (paper: 0.5)", json_schema_extra=search(0.1, 1)
    )


class ProRandConv(LossMethod):
    """Progressive random convolutions: repeating a small random block widens its reach and keeps more of the shape."""

    Settings = ProRandConvSettings
    settings: ProRandConvSettings
    summary = "Small random convolutions, repeated, beside the images."
    citation = "Choi et al., Progressive Random Convolutions for Single Domain Generalization, CVPR 2023"
    cost = 2.1

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        both = [torch.cat(parts) for parts in zip(batch, self.changed(batch), strict=True)]
        source, changed = task_loss(self.network(both[0]), both[1], self.source.void).view(2, -1).mean(1)
        loss = source + changed
        return {"loss": loss, "source": source, "changed": changed}

    def changed(self, batch: Batch) -> Batch:
        images = progressive_convolution(
            batch.images,
            repeats=int(torch.randint(1, self.settings.repeats + 1, ())),
            offset=self.settings.offset,
            contrast=self.settings.contrast,
            value_range=self.source.value_range,
        )
        return Batch(images, batch.labels)
