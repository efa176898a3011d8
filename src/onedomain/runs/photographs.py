"""Settings that are usual for photographs: by the network, the number of images, and the method."""

from __future__ import annotations

import math
from typing import Any

from onedomain.data.image_folder import PHOTOGRAPHS

EPOCHS, FEWEST_STEPS, MOST_STEPS = 20, 300, 3_000  # of fine-tuning, in batches of 32
_FROM_SCRATCH = 5  # times as many steps without pretrained weights
_OF_DIGITS = 3 * 32 * 32  # values of an image, for which the methods' own rates of ascent are


def fine_tuning(images: int) -> dict[str, Any]:
    """For a pretrained network on so many images: a head that knows its features first, then all of it, slowly."""
    return {
        "steps": _steps(images),
        "learning_rate": 1e-4,
        "schedule": "cosine",
        "head_start": True,
        "freeze_norm": True,
        "flips_and_crops": True,
        "checkpoint_every": 100,
    }


def from_scratch(images: int) -> dict[str, Any]:
    steps = _FROM_SCRATCH * _steps(images)
    return {"steps": steps, "learning_rate": 1e-3, "schedule": "cosine", "flips_and_crops": True}


def of_photographs(values: int) -> dict[str, dict[str, Any]]:
    """What some methods need beside a recipe, for images of so many values.

    Losses are means over an image's values: the rate of an ascent grows with their number, as in segmentation. The
    curvature of a meta step is left out: at the inner rate of 1e-4 it changes the gradient of EfficientNet-Lite0 by a
    thousandth (batches of Office-Caltech), and costs four times as much time and twice the memory.
    """
    plain = {"second_order": False}
    climb = {"ascent_rate": values / _OF_DIGITS / 32, "ascent_steps": 10}
    rounds = {**climb, "rounds": 2, "round_size": 200}
    sdg = {**climb, **plain, "domains": 2, "domain_size": 200, "augmented_batch": 16, "auto_encoder": "conv"}
    return {"gud": rounds, "me-ada": rounds, "sdg": sdg, "uncertain-sdg": plain, "meta-randconv": plain}


def usual_settings(
    method: str, image_shape: tuple[int, int, int], images: int, pretrained: bool, dense: bool
) -> dict[str, Any]:
    """What is usual for images of one's own, beyond the method's own settings."""
    height, width, channels = image_shape
    if dense or min(height, width) < PHOTOGRAPHS:
        return {}
    recipe = fine_tuning(images) if pretrained else from_scratch(images)
    return {**recipe, **of_photographs(height * width * channels).get(method, {})}


def _steps(images: int) -> int:
    epochs = math.ceil(EPOCHS * images / 32 / 100) * 100
    return min(MOST_STEPS, max(FEWEST_STEPS, epochs))
