"""What an adaptation is: a method that also meets a few labelled images of the target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field

from onedomain.components.augmentations.lighting import relit
from onedomain.components.augmentations.movement import moved
from onedomain.data.domain import Batch, Domain
from onedomain.methods.adapt import ADAPTATIONS
from onedomain.methods.base import AdamMethod, Setup
from onedomain.settings import Settings

# How far `vary` = 1 changes an image at most: what `moved` and `relit` take.
TURN, ZOOM, SHEAR, SHIFT = 20.0, 0.25, 0.2, 0.1
CONTRAST, BRIGHTNESS = 0.4, 0.15


class ShotsSettings(Settings):
    vary: float = Field(
        0.0, ge=0, le=4, description="how far drawn images are moved and relit at every step; 0: as they are (paper)"
    )
    invert: float = Field(0.0, ge=0, le=1, description="chance of a drawn image to have bright for dark (paper: 0)")


class Adaptation(AdamMethod):
    """Trains a network on drawn images of a target, `shots`; the loop and its promises are those of training.

    A step shows them by `shown`, which is what `vary` and `invert` change.
    """

    Settings = ShotsSettings
    settings: ShotsSettings
    from_scratch: ClassVar[bool] = False  # whether it makes a network of its own from source and shots together
    shots: Domain

    @property
    def name(self) -> str:
        return ADAPTATIONS.name_of(type(self))

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        if setup.shots is not None:
            self.shots = setup.shots
            self.shots_range = setup.shots.value_range  # once: of a random dataset it may be another each time

    def planned(self, shots: int) -> dict[str, Any]:
        """The settings for `shots` drawn images: a rule finds the `steps` that were left open."""
        return self.settings.model_dump()

    def shown(self, batch: Batch) -> Batch:
        """Drawn images from elsewhere and in another light: so few of them would else be learned by heart."""
        vary, invert = self.settings.vary, self.settings.invert
        if vary > 0:
            batch = moved(batch, turn=TURN * vary, zoom=ZOOM * vary, shear=SHEAR * vary, shift=SHIFT * vary)
        if vary > 0 or invert > 0:
            lit = relit(
                batch.images,
                contrast=CONTRAST * vary,
                brightness=BRIGHTNESS * vary,
                inverted=invert,
                within=self.shots_range,
            )
            batch = Batch(lit, batch.labels)
        return batch


class TwoDomainSettings(ShotsSettings):
    """From scratch on a full source and a few target images: rates and numbers of steps are ours."""

    steps: int = Field(2_500, ge=1, le=10**9, description="training steps: fixed in advance, never by target accuracy")
    batch_size: int = Field(30, ge=2, le=2**16, description="source images per step, classes in equal numbers")
    shots_a_class: int = Field(2, ge=1, description="target images per step, of each class in the source batch")
    learning_rate: float = Field(1e-3, gt=0, description="Adam's rate (fine-tuning has the paper's 1e-4)")


class TwoDomains(Adaptation):
    """Trains a new network on batches of the source, each with drawn images of the same classes beside it."""

    Settings = TwoDomainSettings
    settings: TwoDomainSettings
    from_scratch = True
    needs_embedding = True
    balanced = True
    dense = False

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        if setup.shots is not None:
            labels = np.asarray(setup.shots.labels)
            self.members = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}

    def beside(self, batch: Batch) -> Batch:
        """Target images of the classes of a source batch, drawn and changed anew at every step.

        Of classes that the target lacks there are none; if it lacks all of them, there are some of any class.
        """
        labels = [label for label in sorted(set(batch.labels.tolist())) if label in self.members]
        chosen = [
            self.members[label][torch.randperm(len(self.members[label]))[: self.settings.shots_a_class].numpy()]
            for label in labels or self.members
        ]
        return self.shown(self.varied(self.shots.batch(np.concatenate(chosen), self.device)))

    def embed_both(self, source: Batch, target: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and embeddings, (N, D), of the source's images followed by the target's, from one pass."""
        # In the layout of the parts: concatenating keeps channels_last.
        logits, z = self.network.embed(torch.cat([source.images, target.images]))
        return logits, z.flatten(1)
