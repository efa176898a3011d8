"""Pictures of segmentation from outcomes alone: the image, the truth, predictions and uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onedomain.data.arrays import ByteArray
from onedomain.evaluation.masks import palette
from onedomain.evaluation.outcome import Outcome

STRIPE = 3  # pixels: width of the stripes that mark void
STRIPES = (255, 205)  # their greys
FADED = 0.7  # how far the colours of void pixels go to white in a prediction


@dataclass(frozen=True)
class Segmented:
    """One image with its pixels' classes as colours, bytes of (height, width, 3); uncertainty is grey, (height, width).

    `said` and `unsure` hold one picture for each of the outcomes, `right` and `doubt` what is to be said of it.
    `classes` are those to be seen in any of the masks.
    """

    image: ByteArray
    truth: ByteArray
    said: tuple[ByteArray, ...]
    right: tuple[str, ...]
    unsure: tuple[ByteArray, ...]
    doubt: tuple[str, ...]
    classes: tuple[int, ...]
    void: bool  # whether there are void pixels


def segmented(outcomes: Sequence[Outcome], most: int) -> list[Segmented]:
    """The first of the images of which every pixel was kept; all outcomes must be of the same images."""
    return [picture for place in range(most) if (picture := _picture(outcomes, place)) is not None]


def _picture(outcomes: Sequence[Outcome], place: int) -> Segmented | None:
    first = outcomes[0]
    images, truths = first.mask_images, first.mask_truth
    if images is None or truths is None or place >= len(images):
        return None
    truth = truths[place]
    void = np.zeros(truth.shape, bool) if first.void is None else truth == first.void
    image, most = first.sample[place], math.log(max(2, len(first.classes)))
    said, unsure = [], []
    seen = set(np.unique(truth[~void]).tolist())
    for outcome in outcomes:
        if outcome.mask_predicted is None or outcome.mask_uncertainty is None:
            return None
        predicted = outcome.mask_predicted[place]
        seen |= set(np.unique(predicted).tolist())
        colours = _coloured(predicted, first.classes)
        pale = np.rint(colours + FADED * (255.0 - colours)).astype(np.uint8)
        said.append(np.where(void[..., None], pale, colours))
        # Black is certain, white clueless.
        shares = (outcome.mask_uncertainty[place].astype(np.float32) / most).clip(0, 1)
        unsure.append(np.rint(255 * shares).astype(np.uint8))
    picture = images[place]
    shown = np.repeat(picture[..., :1], 3, -1) if picture.shape[-1] < 3 else picture[..., :3]
    # Void pixels of the truth are diagonal stripes: no class has these.
    rows, columns = np.indices(void.shape)
    stripes = np.where((rows + columns) // STRIPE % 2 == 0, *STRIPES).astype(np.uint8)
    striped = np.where(void[..., None], stripes[..., None], _coloured(np.where(void, 0, truth), first.classes))
    right = tuple(f"{outcome.right[image]:.0%} of pixels right" for outcome in outcomes)
    doubt = tuple(f"{outcome.uncertainty[image]:.2f} nats per pixel" for outcome in outcomes)
    classes = tuple(sorted(seen))
    return Segmented(shown, striped, tuple(said), right, tuple(unsure), doubt, classes, bool(void.any()))


def _coloured(labels: np.ndarray, classes: Sequence[str]) -> ByteArray:
    colours: ByteArray = palette(classes)[labels.astype(np.int64)]
    return colours
