"""Moments of a training, seen on a fixed sample of the source: one small file each, for figures over time.

What is looked at is the method's to say (`Method.snapshot`). Looking changes nothing: no weight, no random number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from onedomain.arrays import SUFFIX, load_arrays, not_ours, save_arrays
from onedomain.data.domain import Domain
from onedomain.memory import PIXELS, PIXELS_WITH_GRADIENTS, images_at_once
from onedomain.methods.base import Method
from onedomain.randomness import private_randomness, seed_everything

SNAPSHOTS = "snapshots"
SAMPLE = 100  # images of the source, fewer if they are large


@dataclass(frozen=True)
class Snapshot:
    """What a method said of the sample after `step` steps, by name."""

    step: int
    arrays: dict[str, np.ndarray] = field(repr=False)


class Snapshots:
    """Takes the snapshots of a run with a folder, when the method wants them."""

    def __init__(self, method: Method, source: Domain, folder: Path | None, seed: int) -> None:
        self.method, self.source, self.folder, self.seed = method, source, folder, seed
        height, width, _ = source.image_shape
        size = images_at_once(height, width, SAMPLE, PIXELS_WITH_GRADIENTS if source.dense else PIXELS)
        self.chosen = np.random.default_rng(len(source)).permutation(len(source))[:size]

    def take(self, step: int) -> None:
        """Look, if it is time. To be called before the checkpoint of a step: what is resumed has its snapshots."""
        if self.folder is None or step not in self.method.snapshot_steps:
            return
        module = self.method.network.module
        was_training = module.training
        with private_randomness():
            seed_everything(self.seed, step=-1)  # the same noise at every moment, so that moments can be compared
            seen = self.method.snapshot(self.source.batch(self.chosen, self.method.device))
        module.train(was_training)
        save_arrays(self.folder / SNAPSHOTS / f"step-{step:09d}{SUFFIX}", {"step": step}, seen)


def read_snapshots(folder: Path) -> list[Snapshot]:
    """All snapshots of a run folder, the first moment first."""
    snapshots = []
    for path in sorted((folder / SNAPSHOTS).glob(f"step-*{SUFFIX}")):
        about, arrays = load_arrays(path)
        try:
            snapshots.append(Snapshot(int(about["step"]), arrays))
        except (KeyError, TypeError, ValueError) as error:
            raise not_ours(path, error) from None
    return snapshots
