"""Blur: Gaussian, defocus (a disk), glass (pixels from nearby), motion (along a line), zoom."""

from __future__ import annotations

import cv2
import numpy as np

from onedomain.data.corruptions.shared import (
    Bytes,
    Floats,
    Generators,
    as_bytes,
    as_unit,
    as_unit_single,
    drawn,
    motion_blurred,
    smoothed,
    zoomed,
)


def gaussian_blur(images: Bytes, sigma: float, rngs: Generators) -> Bytes:
    return as_bytes(smoothed(as_unit(images), sigma))


def defocus_blur(images: Bytes, constants: tuple[float, float], rngs: Generators) -> Bytes:
    disk = _disk(*constants)
    return as_bytes(np.stack([cv2.filter2D(image, -1, disk) for image in as_unit(images)]))


def _disk(radius: float, rim: float) -> Floats:
    """A disk whose rim is smoothed, in a square of at least 17 pixels."""
    reach = max(8, radius)
    line = np.arange(-reach, reach + 1)
    across, down = np.meshgrid(line, line)
    disk = (across**2 + down**2 <= radius**2).astype(np.float32)
    side = 3 if radius <= 8 else 5
    return cv2.GaussianBlur(disk / disk.sum(), (side, side), rim)


def glass_blur(images: Bytes, constants: tuple[float, int, int], rngs: Generators) -> Bytes:
    """Every pixel takes the colour of one nearby, one after the other from the lower right corner on.

    The published script means to exchange the two; its exchange of rows of an array copies the second onto the first.
    This does what it does, not what it means.
    """
    sigma, reach, rounds = constants
    smooth = (smoothed(as_unit(images), sigma) * 255).astype(np.uint8)
    height, width = images.shape[1:3]
    rows, columns = np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1)
    taking = (rows[:, None] * width + columns).ravel()
    shuffled = np.empty_like(smooth)
    for place, rng in enumerate(rngs):
        comes_from = list(range(height * width))
        for _ in range(rounds):
            right, down = rng.integers(-reach, reach, (2, len(taking)))
            for pixel, other in zip(taking.tolist(), (taking + down * width + right).tolist(), strict=True):
                comes_from[pixel] = comes_from[other]
        shuffled[place] = smooth[place].reshape(height * width, -1)[comes_from].reshape(smooth.shape[1:])
    return as_bytes(smoothed(as_unit(shuffled), sigma))


def motion_blur(images: Bytes, constants: tuple[float, float], rngs: Generators) -> Bytes:
    return motion_blurred(images, *constants, angles=drawn(rngs, lambda rng: rng.uniform(-45, 45)))


def zoom_blur(images: Bytes, constants: tuple[float, float], rngs: Generators) -> Bytes:
    stop, step = constants
    x = as_unit_single(images)
    total = np.zeros_like(x)
    factors = np.arange(1, stop, step)  # 1.06 by 0.01 ends with 1.06: floating point, and so in the published set
    for factor in factors:
        total += zoomed(x, factor)
    return as_bytes((x + total) / (len(factors) + 1))
