"""What a run answered on one domain, image by image: with it, figures and reports need neither data nor model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onedomain.data.arrays import ByteArray, FloatArray
from onedomain.data.domain import IntArray

MASKS = ("mask_images", "mask_truth", "mask_predicted", "mask_uncertainty")


@dataclass(frozen=True)
class Outcome:
    """The answers of a run on one domain, in the domain's order, and a fixed sample of its images.

    `confidence` is the probability of the class that was predicted, `uncertainty` the entropy of the prediction in
    nats; `domain_score` is None for a run without a calibration. `sample` are indices into the domain, the same for
    every run that was scored on as many images; the embedding (None if the network's layer is not named) and the
    probabilities are of all of them, `sample_images`, bytes of (height, width, channels), of the first ones.

    For segmentation a number per pixel would be too large: `labels` and `predicted` are None, `shares_right` is the
    share of an image's pixels that are right, the other values are means over its pixels; void ones do not count,
    and an image of nothing else has NaN. Of the first images of the sample there are pictures of their own size: bytes
    (`mask_images`), true and predicted classes (n, H, W), and the entropy of each pixel in nats; `void` is the class
    that never counts.
    """

    domain: str
    split: str
    unseen: bool
    count: int
    classes: tuple[str, ...]
    note: str
    fingerprint: str
    benchmark: str | None
    value_range: tuple[float, float]  # of a pixel: what is 0 and what is 255 in `sample_images`
    confidence: FloatArray = field(repr=False)
    uncertainty: FloatArray = field(repr=False)
    sample: IntArray = field(repr=False)
    sample_probabilities: FloatArray = field(repr=False)
    sample_images: ByteArray = field(repr=False)
    labels: IntArray | None = field(default=None, repr=False)
    predicted: IntArray | None = field(default=None, repr=False)
    shares_right: FloatArray | None = field(default=None, repr=False)
    domain_score: FloatArray | None = field(default=None, repr=False)
    sample_embedding: FloatArray | None = field(default=None, repr=False)
    void: int | None = None
    mask_images: ByteArray | None = field(default=None, repr=False)
    mask_truth: IntArray | None = field(default=None, repr=False)
    mask_predicted: IntArray | None = field(default=None, repr=False)
    mask_uncertainty: FloatArray | None = field(default=None, repr=False)

    @property
    def dense(self) -> bool:
        """Whether it is of segmentation."""
        return self.labels is None

    @property
    def right(self) -> FloatArray:
        """1 for an image whose class was found, else 0; for segmentation, the share of right pixels."""
        if self.shares_right is not None:
            return self.shares_right
        return np.asarray(self.labels == self.predicted, np.float64)
