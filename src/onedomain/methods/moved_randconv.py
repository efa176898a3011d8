"""Moved RandConv: random convolutions of images that were turned, scaled, slanted and shifted before."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from onedomain.components.augmentations.movement import moved
from onedomain.data.domain import Batch
from onedomain.methods.pro_randconv import ProRandConv, ProRandConvSettings
from onedomain.settings import search


class MovedRandConvSettings(ProRandConvSettings):
    steps: int = Field(5_000, ge=1, le=10**9, description="training steps")
    learning_rate: float = Field(
        1e-3, gt=0, description="rate of the optimiser at the start", json_schema_extra=search(around=10, log=True)
    )
    schedule: Literal["constant", "cosine"] = Field(
        "cosine",
        description="of the rate over the run: as it is, or falling to 0 along half a cosine",
        json_schema_extra=search(among=("constant", "cosine")),
    )
    turn: float = Field(
        20.0,
        ge=0,
        le=180,
        description="largest turn of a changed image, degrees either way",
        json_schema_extra=search(5, 40),
    )
    zoom: float = Field(
        0.25,
        ge=0,
        description="largest change of its size: 1 / (1 + zoom) to 1 + zoom",
        json_schema_extra=search(0.05, 0.5),
    )
    shear: float = Field(
        0.2,
        ge=0,
        description="its largest slant, pixels sideways for each pixel down",
        json_schema_extra=search(0, 0.4),
    )
    shift: float = Field(
        0.1, ge=0, le=1, description="its largest shift, as a share of either side", json_schema_extra=search(0, 0.2)
    )


class MovedRandConv(ProRandConv):
    """Ours: Pro-RandConv changes textures and hardly any shape; here the changed images also have other shapes."""

    Settings = MovedRandConvSettings
    settings: MovedRandConvSettings
    summary = "Pro-RandConv on turned, scaled, moved images (ours)."
    citation = "this library; Choi et al., CVPR 2023"
    cost = 2.2

    def changed(self, batch: Batch) -> Batch:
        settings = self.settings
        return super().changed(
            moved(batch, turn=settings.turn, zoom=settings.zoom, shear=settings.shear, shift=settings.shift)
        )
