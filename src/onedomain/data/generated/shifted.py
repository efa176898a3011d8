"""Shifted copies of held-out source images: domains for tuning settings without looking at a target.

Each shift is generic, none is the recipe of a benchmark's target. Same images, same seed, same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onedomain.data.domain import Domain

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]  # images (N, H, W, C) from 0 to 1
Shift = Callable[[Array, np.random.Generator], Array]
SEVERITIES = (1, 2, 3, 4, 5)


def shifted(domain: Domain, name: str, seed: int = 0) -> Domain:
    """`domain` under the shift called `name`, one of `SHIFTS`; or under several, as in `noisy+inverted`, in turn."""
    moved: Array = np.asarray(domain.images[np.arange(len(domain))], np.float32) / 255
    for part in name.split("+"):
        rng = np.random.default_rng([seed, list(SHIFTS).index(part)])
        moved = np.clip(SHIFTS[part](moved, rng), 0, 1)
    pixels = (255 * moved).round().astype(np.uint8)
    return replace(domain, name=name, images=pixels, note="generated")


def graded(domain: Domain, name: str, severity: int) -> Domain:
    """Every fifth image of `domain`, carried a part of the way to the shift called `name`: 1 (a little) to 5 (all)."""
    some = domain.subset(np.arange(0, len(domain), 5))
    start = np.asarray(some.images[np.arange(len(some))], np.float32)
    end = np.asarray(shifted(some, name).images[np.arange(len(some))], np.float32)
    pixels = (start + severity / SEVERITIES[-1] * (end - start)).round().astype(np.uint8)
    return replace(some, name=f"{name}-{severity}", images=pixels, note="generated")


def inverted(images: Array, rng: np.random.Generator) -> Array:
    return 1 - images


def noisy(images: Array, rng: np.random.Generator) -> Array:
    return images + 0.35 * rng.standard_normal(images.shape, np.float32)


def low_contrast(images: Array, rng: np.random.Generator) -> Array:
    """Between a quarter and a half of the contrast, around a grey of any brightness."""
    contrast = rng.uniform(0.25, 0.5, (len(images), 1, 1, 1))
    grey: Array = rng.uniform(0, 1, contrast.shape) * (1 - contrast)
    return images * contrast + grey


def coloured(images: Array, rng: np.random.Generator) -> Array:
    """Dark and bright become any two colours."""
    colours: Array = rng.random((2, len(images), 1, 1, images.shape[3]), np.float32)
    return images * colours[0] + (1 - images) * colours[1]


def textured(images: Array, rng: np.random.Generator) -> Array:
    """In front of smooth random clouds of colour, as bright as they like."""
    import cv2

    _, height, width, channels = images.shape
    coarse = rng.random((len(images), 5, 5, channels), np.float32)
    clouds = [cv2.resize(cloud, (width, height), interpolation=cv2.INTER_CUBIC) for cloud in coarse]
    behind: Array = 0.8 * np.stack(clouds).reshape(images.shape)
    return np.maximum(images, behind)


def reshaped(images: Array, rng: np.random.Generator) -> Array:
    """Turned, scaled and moved a little; strokes thickened or blurred."""
    import cv2

    _, height, width, _ = images.shape
    moved = []
    for image in images:
        matrix = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-20, 20), rng.uniform(0.7, 1.2))
        matrix[:, 2] += rng.uniform(-0.1, 0.1, 2) * (width, height)
        turned = cv2.warpAffine(image, matrix, (width, height))
        thick = rng.random() < 0.5
        moved.append(cv2.dilate(turned, np.ones((2, 2))) if thick else cv2.GaussianBlur(turned, (5, 5), 1.5))
    return np.stack(moved).reshape(images.shape)


SHIFTS: dict[str, Shift] = {
    "inverted": inverted,
    "noisy": noisy,
    "low-contrast": low_contrast,
    "coloured": coloured,
    "textured": textured,
    "reshaped": reshaped,
}
COMPOSED = ("reshaped+coloured", "reshaped+textured+inverted", "low-contrast+noisy")
