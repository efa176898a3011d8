"""The 19 corruptions of CIFAR-10-C in five severities, for any images; what they do and where ours differ: docs.

Nothing heavy is imported until an image is corrupted, so that the names are quick to list.
"""

from __future__ import annotations

import hashlib
import importlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onedomain.data.corruptions.constants import CIFAR10_C, IMAGENET_C, Constants
from onedomain.errors import UserError, unknown

if TYPE_CHECKING:
    from onedomain.data.corruptions.shared import Bytes

SEVERITIES = (1, 2, 3, 4, 5)
CATEGORIES: Mapping[str, tuple[str, ...]] = {  # as the paper's Table 4 groups and orders them
    "weather": ("fog", "snow", "frost"),
    "blur": ("zoom-blur", "defocus-blur", "glass-blur", "gaussian-blur", "motion-blur"),
    "noise": ("speckle-noise", "shot-noise", "impulse-noise", "gaussian-noise"),
    "digital": (
        "jpeg-compression",
        "pixelate",
        "spatter",
        "elastic-transform",
        "brightness",
        "saturate",
        "contrast",
    ),
}
KINDS = tuple(kind for kinds in CATEGORIES.values() for kind in kinds)
SETS: Mapping[str, Constants] = {"cifar10-c": CIFAR10_C, "imagenet-c": IMAGENET_C}
LARGE = 128  # shorter side from which on ImageNet-C's constants, made for 224×224, suit better than CIFAR-10-C's
VERSION = 1  # of the bytes: raise it with any change to what a corruption makes


class Corruption(NamedTuple):
    """What was done to all images of a domain."""

    kind: str
    severity: int


def in_record(corruption: Corruption | None) -> dict[str, Any]:
    """The corruption of a domain as two keys of its records; none where there is no corruption."""
    return {} if corruption is None else {"corruption": corruption.kind, "severity": corruption.severity}


def check_kind(name: str, field: str = "corruption") -> str:
    """The name of a corruption, also if it is written as in the official files: `gaussian_noise`."""
    kind = name.replace("_", "-")
    if kind not in KINDS:
        raise unknown(field, name, KINDS)
    return kind


def set_for(height: int, width: int) -> str:
    """Which published constants suit images of this size."""
    return "imagenet-c" if min(height, width) >= LARGE else "cifar10-c"


def corrupt(
    images: Bytes,
    kind: str,
    severity: int,
    *,
    seed: int = 0,
    keys: Sequence[int | str] | None = None,
    constants: str | None = None,
    overlays: Path | None = None,
) -> Bytes:
    """The images (N, height, width, 3), bytes, under one corruption.

    What an image becomes depends on its pixels, `seed`, the kind, the severity and its key alone, never on the other
    images. Keys are numbers or texts, one per image; by default the numbers from 0. `constants` are `cifar10-c` or
    `imagenet-c`; by default what suits the size. Only frost needs `overlays`, the folder of its photographs.
    """
    import numpy as np

    kind = check_kind(kind)
    if severity not in SEVERITIES:
        raise UserError("severity", f"got {severity}", "a whole number from 1 (mild) to 5 (severe)")
    if images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8:
        given = f"{images.dtype} of shape {images.shape}"
        raise UserError("images", given, "uint8 of shape (N, height, width, 3)")
    chosen = constants or set_for(*images.shape[1:3])
    if chosen not in SETS:
        raise unknown("constants", chosen, SETS)
    keys = range(len(images)) if keys is None else keys
    rngs = [np.random.default_rng([seed, zlib.crc32(kind.encode()), severity, _number(key)]) for key in keys]
    if len(rngs) != len(images):
        raise UserError("keys", f"{len(rngs)} for {len(images)} images", "one per image")
    if not len(images):
        return images
    extra = {}
    if kind == "frost":
        if overlays is None:
            raise UserError("frost", "no folder of overlays is given", "overlays=…, with frost1.png to frost5.jpg")
        extra["overlays"] = overlays
    category = next(name for name, kinds in CATEGORIES.items() if kind in kinds)
    function = getattr(importlib.import_module(f"{__name__}.{category}"), kind.replace("-", "_"))
    return function(images, SETS[chosen][kind][severity - 1], rngs, **extra)


def _number(key: int | str) -> int:
    if isinstance(key, str):
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return int(key)


def makeable(overlays: Path) -> tuple[Sequence[str], list[UserError]]:
    """The corruptions that can be made, and why others cannot."""
    from onedomain.data.corruptions.weather import missing_overlays

    absent = missing_overlays(overlays)
    if absent is None:
        return KINDS, []
    return [kind for kind in KINDS if kind != "frost"], [absent]
