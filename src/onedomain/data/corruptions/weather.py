"""Weather: fog (a plasma fractal), snow (blurred flakes), frost (photographs of frosted glass laid over)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

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
    zoomed,
)
from onedomain.errors import UserError

# The published draw leaves out a sixth.
OVERLAYS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def fog(images: Bytes, constants: tuple[float, float], rngs: Generators) -> Bytes:
    weight, decay = constants
    x = as_unit(images)
    brightest = x.max((1, 2, 3), keepdims=True)
    height, width = images.shape[1:3]
    mist = plasma(1 << (max(height, width) - 1).bit_length(), decay, rngs)[:, :height, :width, None]
    return as_bytes((x + weight * mist) * brightest / (brightest + weight))


def plasma(side: int, decay: float, rngs: Generators) -> Floats:
    """Maps (N, side, side) from 0 to 1 by the diamond-square algorithm; `side` is a power of two.

    A point is the mean of its four neighbours plus a draw, whose range falls with `decay` from scale to scale. The maps
    wrap around at their edges.
    """
    maps = np.zeros((len(rngs), side, side))
    step, spread = side, 100.0
    while step >= 2:
        half, cells = step // 2, side // step

        def wobble(size: int = cells, spread: float = spread) -> Floats:
            # The square of the spread: as published
            return spread * drawn(rngs, lambda rng: rng.uniform(-spread, spread, (size, size)))

        corners = maps[:, ::step, ::step]
        total = corners + np.roll(corners, -1, 1)
        total += np.roll(total, -1, 2)
        maps[:, half::step, half::step] = total / 4 + wobble()
        middles = maps[:, half::step, half::step]
        across = (middles + np.roll(middles, 1, 1)) + (corners + np.roll(corners, -1, 2))
        maps[:, ::step, half::step] = across / 4 + wobble()
        down = (middles + np.roll(middles, 1, 2)) + (corners + np.roll(corners, -1, 1))
        maps[:, half::step, ::step] = down / 4 + wobble()
        step, spread = half, spread / decay
    maps -= maps.min((1, 2), keepdims=True)
    return maps / np.maximum(maps.max((1, 2), keepdims=True), np.finfo(np.float64).tiny)


def snow(images: Bytes, constants: tuple[float, ...], rngs: Generators) -> Bytes:
    mean, deviation, zoom, threshold, radius, sigma, share = constants
    x = as_unit_single(images)
    flakes = drawn(rngs, lambda rng: rng.normal(mean, deviation, images.shape[1:3]))
    flakes = zoomed(flakes[..., None], zoom)
    flakes = np.where(flakes < threshold, 0, flakes)
    falling = motion_blurred(as_bytes(flakes), radius, sigma, drawn(rngs, lambda rng: rng.uniform(-135, -45)))
    layer = as_unit(falling)
    grey = cv2.cvtColor(x.reshape(len(x), -1, 3), cv2.COLOR_RGB2GRAY).reshape(*x.shape[:3], 1)
    white = np.float32(share) * x + np.float32(1 - share) * np.maximum(x, grey * np.float32(1.5) + np.float32(0.5))
    return as_bytes(white + layer + layer[:, ::-1, ::-1])


def frost(images: Bytes, constants: tuple[float, float, float], rngs: Generators, overlays: Path) -> Bytes:
    weight, weight_of_frost, scale = constants
    height, width = images.shape[1:3]
    photographs = _overlays(overlays, scale, height, width)
    frosted = np.empty_like(images)
    for place, rng in enumerate(rngs):
        photograph = photographs[int(rng.integers(len(photographs)))]
        top = rng.integers(photograph.shape[0] - height)
        left = rng.integers(photograph.shape[1] - width)
        part = photograph[top : top + height, left : left + width]
        frosted[place] = np.clip(weight * images[place] + weight_of_frost * part, 0, 255).astype(np.uint8)
    return frosted


def missing_overlays(folder: Path) -> UserError | None:
    """What to say if photographs of frost are not there: they are not ours to ship."""
    absent = [name for name in OVERLAYS if not (folder / name).is_file()]
    if not absent:
        return None
    source = "from ImageNet-C/create_c of github.com/hendrycks/robustness"
    return UserError("frost", f"{', '.join(absent)} not found in {folder}; put these overlays there, {source}")


@lru_cache(maxsize=4)
def _overlays(folder: Path, scale: float, height: int, width: int) -> Sequence[Bytes]:
    """The photographs in RGB, scaled, and enlarged further if they are smaller than the image."""
    absent = missing_overlays(folder)
    if absent is not None:
        raise absent
    photographs: list[Bytes] = []
    for name in OVERLAYS:
        photograph = cv2.imread(str(folder / name), cv2.IMREAD_COLOR)
        if photograph is None:
            raise UserError(str(folder / name), "cannot be decoded as an image", "the published overlay")
        factor = max(scale, (height + 1) / photograph.shape[0], (width + 1) / photograph.shape[1])
        if factor != 1:
            photograph = cv2.resize(photograph, (0, 0), fx=factor, fy=factor)
        photographs.append(np.ascontiguousarray(photograph[..., ::-1], np.uint8))
    return photographs
