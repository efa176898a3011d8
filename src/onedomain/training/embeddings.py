"""Where the trained network embeds images of the augmented domains: kept beside each domain's sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from onedomain.components.augmented_domains import EMBEDDED
from onedomain.components.compact import as_vectors
from onedomain.data.arrays import SUFFIX, not_ours, save_arrays
from onedomain.data.memory import images_at_once
from onedomain.methods.base import Method
from onedomain.runs.samples import numbered

BATCH = 100  # images that are embedded at once, fewer if they are large


def save_embeddings(folder: Path, method: Method) -> None:
    """Embed some images of every augmented domain of a run folder by the trained network."""
    for path in numbered(folder, ".npy"):
        try:
            images = np.load(path, mmap_mode="r")[:EMBEDDED].astype(np.float32)
        except (OSError, ValueError) as error:
            raise not_ours(path, error) from None
        parts = []
        _, height, width, _ = images.shape
        at_once = images_at_once(height, width, BATCH)
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
