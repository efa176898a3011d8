"""Noise: Gaussian, shot (Poisson), impulse (salt and pepper), speckle (in proportion to the pixel)."""

from __future__ import annotations

import numpy as np

from onedomain.data.corruptions.shared import Bytes, Generators, as_bytes, as_unit, drawn


def gaussian_noise(images: Bytes, deviation: float, rngs: Generators) -> Bytes:
    return as_bytes(as_unit(images) + drawn(rngs, lambda rng: rng.normal(scale=deviation, size=images.shape[1:])))


def speckle_noise(images: Bytes, deviation: float, rngs: Generators) -> Bytes:
    x = as_unit(images)
    return as_bytes(x + x * drawn(rngs, lambda rng: rng.normal(scale=deviation, size=images.shape[1:])))


def shot_noise(images: Bytes, photons: float, rngs: Generators) -> Bytes:
    x = as_unit(images)
    return as_bytes(np.stack([rng.poisson(each * photons) / photons for each, rng in zip(x, rngs, strict=True)]))


def impulse_noise(images: Bytes, share: float, rngs: Generators) -> Bytes:
    """Single values of the three channels, not whole pixels, become black or white."""
    chances = drawn(rngs, lambda rng: rng.random((2, *images.shape[1:])))
    hit, white = chances[:, 0] <= share, chances[:, 1] <= 0.5
    return np.where(hit, np.where(white, np.uint8(255), np.uint8(0)), images)
