"""Meta-RandConv: random convolutions of the batch as the domains of SDG's meta-test."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from pydantic import Field

from onedomain.components.augmentations.random_convolution import (
    mixed_with_original,
    progressive_convolution,
    random_convolution,
)
from onedomain.components.descent import take_step
from onedomain.components.equations import task_loss
from onedomain.components.meta import batch_losses, meta_gradient
from onedomain.data.domain import Batch
from onedomain.methods.base import AdamMethod
from onedomain.methods.randconv import SIZES
from onedomain.settings import Settings, search


class MetaRandConvSettings(Settings):
    domains: int = Field(
        1, ge=1, description="K, convolved copies of the batch that a step is tested on", json_schema_extra=search(1, 3)
    )
    convolution: Literal["progressive", "mixed"] = Field(
        "progressive", description="as Pro-RandConv makes its images, or as RandConv does"
    )
    repeats: int = Field(
        10,
        ge=1,
        description="most repeats of a progressive block, drawn each step and domain",
        json_schema_extra=search(3, 15),
    )
    second_order: bool = Field(True, description="exact gradient through the inner step; false leaves out curvature")
    inner_rate: float = Field(1e-4, gt=0, description="η of Eq. 8", json_schema_extra=search(1e-4, 0.1, log=True))
    inner_steps: int = Field(1, ge=1, description="gradient steps of the meta-train")


class MetaRandConv(AdamMethod):
    """Ours: the scheme of SDG (Eq. 8 and 9), its domains made anew in every step instead of three times per run.

    The network learns from the source such that one gradient step ahead it also answers images of random texture.
    """

    Settings = MetaRandConvSettings
    settings: MetaRandConvSettings
    summary = "Random convolutions as the meta-test of SDG (ours)."
    citation = "this library; Qiao, Zhao, Peng, CVPR 2020; Choi et al., CVPR 2023"
    cost = 5.1

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        losses_of = partial(batch_losses, loss=partial(task_loss, void=self.source.void), half=self.network.half)
        domains = [Batch(self.changed(batch.images), batch.labels) for _ in range(self.settings.domains)]
        meta = meta_gradient(
            self.network.module,
            lambda model: losses_of(model, [batch]),
            lambda model: losses_of(model, domains),
            rate=self.settings.inner_rate,
            inner_steps=self.settings.inner_steps,
            second_order=self.settings.second_order,
            scale=self.scaler.get_scale(),
        )
        meta.assign(self.network.module)
        take_step(self.optimiser, self.scaler)
        self.scaler.update()
        losses = torch.cat([meta.source_loss, meta.domain_losses])
        return {"loss": losses.sum(), "source": losses[0], "changed": losses[1:].mean()}

    def changed(self, images: torch.Tensor) -> torch.Tensor:
        if self.settings.convolution == "mixed":
            return mixed_with_original(images, random_convolution(images, SIZES))
        repeats = int(torch.randint(1, self.settings.repeats + 1, ()))
        return progressive_convolution(images, repeats=repeats, value_range=self.source.value_range)
