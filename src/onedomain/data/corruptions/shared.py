"""What several corruptions are made of. Images are (N, height, width, channels); every image draws by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating[Any]]
Generators = Sequence[np.random.Generator]  # one per image, so that no image depends on its neighbours


def drawn(rngs: Generators, draw: Callable[[np.random.Generator], Any]) -> Floats:
    return np.stack([draw(rng) for rng in rngs])


def as_unit(images: Bytes) -> npt.NDArray[np.float64]:
    """Bytes as 0 to 1."""
    return images / 255.0


def as_unit_single(images: Bytes) -> npt.NDArray[np.float32]:
    """Bytes as 0 to 1 in single precision, where the published script uses that."""
    return images.astype(np.float32) / np.float32(255)


def as_bytes(images: Floats) -> Bytes:
    """0 to 1 as bytes, cut off as in the published script, not rounded."""
    return (np.clip(images, 0, 1) * 255).astype(np.uint8)


def smoothed(images: Floats, sigma: float, mode: str = "nearest", truncate: float = 4.0) -> Floats:
    """A Gaussian over height and width, the second and third axis."""
    sigmas = (0, sigma, sigma, *[0] * (images.ndim - 3))
    return ndimage.gaussian_filter(images, sigmas, mode=mode, truncate=truncate)


def zoomed(images: Floats, factor: float) -> Floats:
    """The middle of each image, enlarged to the whole of it."""
    count, height, width, channels = images.shape
    kept_height, kept_width = int(np.ceil(height / factor)), int(np.ceil(width / factor))
    top, left = (height - kept_height) // 2, (width - kept_width) // 2
    middle = images[:, top : top + kept_height, left : left + kept_width]
    planes = middle.transpose(1, 2, 0, 3).reshape(kept_height, kept_width, -1)  # all images in one call
    large = ndimage.zoom(planes, (factor, factor, 1), order=1)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    large = large[top : top + height, left : left + width].reshape(height, width, count, channels)
    return large.transpose(2, 0, 1, 3)


def motion_blurred(images: Bytes, radius: float, sigma: float, angles: Floats) -> Bytes:
    """Blur along a line that begins in each pixel, as ImageMagick's MotionBlurImage does; one angle per image.

    A one-sided Gaussian of 2·radius + 1 pixels; what lies beyond the rim counts as the rim.
    """
    count, height, width, _ = images.shape
    steps = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(steps**2) / (2.0 * sigma * sigma))
    weights /= weights.sum()
    radians = np.deg2rad(np.asarray(angles))[:, None]
    down = np.ceil(steps * np.sin(radians) - 0.5).astype(np.int64)  # (N, steps)
    right = np.ceil(steps * np.cos(radians) - 0.5).astype(np.int64)
    every = np.arange(count)[:, None, None]
    blurred = np.zeros(images.shape)
    for step, weight in enumerate(weights):
        rows = np.clip(np.arange(height) + down[:, step, None], 0, height - 1)
        columns = np.clip(np.arange(width) + right[:, step, None], 0, width - 1)
        blurred += weight * images[every, rows[:, :, None], columns[:, None, :]]
    return (blurred + 0.5).astype(np.uint8)  # rounded, as there
