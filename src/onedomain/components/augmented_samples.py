"""A sample of an augmented domain S⁺ is kept for figures: images beside their originals, and their classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from onedomain.components.compact import as_bytes
from onedomain.data.arrays import SUFFIX, save_arrays
from onedomain.data.domain import Images, IntArray

PAIRS = 40  # images that are kept beside their originals
EMBEDDED = 200  # images whose embedding is kept


def save_sample(
    folder: Path,
    domain: str,
    originals: torch.Tensor,
    images: torch.Tensor,
    labels: IntArray | Images,
    origins: IntArray,
    value_range: tuple[float, float],
) -> None:
    """Keep images of a domain that is complete, what they were made from, and labels of the domain."""
    arrays: dict[str, np.ndarray] = {
        "originals": as_bytes(originals, value_range),
        "images": as_bytes(images, value_range),
        "labels": labels[:EMBEDDED] if len(labels.shape) == 1 else np.zeros(0, np.int64),
        "origins": origins,
    }
    save_arrays(folder / f"{domain}.sample{SUFFIX}", {"domain": domain}, arrays)
