"""Predictions of pixels as pictures: the mask in the colours of its classes, and how unsure each pixel is."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onedomain.data.datasets import camvid, synthia


def palette(classes: Sequence[str]) -> np.ndarray:
    """A colour for each class, bytes of (classes, 3): the published ones, else those of Pascal VOC, all different.

    >>> palette(["a", "b", "c"]).tolist()
    [[0, 0, 0], [128, 0, 0], [0, 128, 0]]
    """
    for published in (camvid.COLOURS, synthia.COLOURS):
        if tuple(published) == tuple(classes):
            return np.array(list(published.values()), np.uint8)
    # The bits of a number go to red, green and blue in turn, the lowest to their highest.
    bits = (np.arange(len(classes))[:, None] >> np.arange(24) & 1).reshape(-1, 8, 3)
    return np.packbits(bits, axis=1)[:, 0]


def mask_as_png(labels: np.ndarray, classes: Sequence[str], size: tuple[int, int]) -> bytes:
    """Labels (H, W) as an indexed PNG of `size`, (width, height), whose values are the classes' numbers."""
    from PIL import Image

    image = Image.fromarray(labels.astype(np.uint8))
    image.putpalette(palette(classes).tobytes())
    return _as_png(image.resize(size, Image.Resampling.NEAREST))


def uncertainty_as_png(entropy: np.ndarray, classes: Sequence[str], size: tuple[int, int]) -> bytes:
    """Entropies (H, W) in nats as a grey PNG: black is certain, white is log(classes), clueless."""
    from PIL import Image

    grey = np.rint(255 * (entropy / math.log(len(classes))).clip(0, 1)).astype(np.uint8)
    return _as_png(Image.fromarray(grey).resize(size, Image.Resampling.BILINEAR))


def _as_png(image: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()
