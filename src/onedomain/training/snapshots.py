"""What figures need of a network: snapshots over a training, and embeddings of augmented domains after it.

What a snapshot holds is the method's to say (`Method.snapshot`). Looking changes nothing: no weight, no random number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from onedomain.components.augmented_domains import EMBEDDED
from onedomain.components.compact import as_vectors
from onedomain.data.arrays import SUFFIX, Form, check_forms, not_ours, save_arrays
from onedomain.data.domain import Domain
from onedomain.data.memory import PIXELS, PIXELS_WITH_GRADIENTS, images_at_once
from onedomain.methods.base import Method
from onedomain.networks.named import in_mode
from onedomain.runs.layout import SNAPSHOTS
from onedomain.runs.samples import numbered
from onedomain.training.randomness import seeded

SAMPLE = 100  # images of the source, fewer if they are large
BATCH = 100  # images that are embedded at once, fewer if they are large


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
        # The same noise at every moment, so that moments can be compared.
        with seeded(self.seed), in_mode(module, training=False):
            seen = self.method.snapshot(self.source.batch(self.chosen, self.method.device))
        save_arrays(self.folder / SNAPSHOTS / f"step-{step:09d}{SUFFIX}", {"step": step}, seen)


def save_embeddings(folder: Path, method: Method, shape: tuple[int, int, int]) -> None:
    """Embed some images, of this shape, of every augmented domain of a run folder by the trained network."""
    for path in numbered(folder, ".npy"):
        try:
            images = np.lib.format.open_memmap(path, mode="r")[:EMBEDDED]
            if not images.size:
                raise ValueError("no image is in it")
        except Exception as error:  # numpy reads a header as Python's own parser does, and raises what that raises
            raise not_ours(path, error) from None
        check_forms(path, {"images": images}, {"images": Form("f", ("count", *shape))})
        images = images.astype(np.float32)
        parts = []
        at_once = images_at_once(*shape[:2], BATCH)
        for start in range(0, len(images), at_once):
            pixels = torch.from_numpy(images[start : start + at_once]).permute(0, 3, 1, 2).to(method.device)
            embedding = method.predictive(pixels, draws=0).embedding
            if embedding is None:
                return
            parts.append(as_vectors(embedding))
        save_arrays(
            path.with_name(f"{path.stem}.embedding{SUFFIX}"),
            {"domain": path.stem},
            {"embedding": np.concatenate(parts)},
        )
