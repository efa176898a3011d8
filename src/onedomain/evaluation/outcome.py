"""What a run answered on one domain, image by image: with it, figures and reports need neither data nor model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onedomain.data.arrays import ByteArray, FloatArray
from onedomain.data.domain import IntArray


@dataclass(frozen=True)
class Outcome:
    """The answers of a run on one domain, in the domain's order, and a fixed sample of its images.

    For segmentation a number per pixel would be too large: answers are means over an image's pixels, but void ones,
    and an image of nothing else has NaN. Of the first images of the sample there are pictures of their own size.
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
    confidence: FloatArray = field(repr=False)  # the probability of the class that was predicted
    uncertainty: FloatArray = field(repr=False)  # the entropy of the prediction, in nats
    sample: IntArray = field(repr=False)  # indices into the domain, the same for every run scored on as many images
    sample_probabilities: FloatArray = field(repr=False)
    sample_images: ByteArray = field(repr=False)  # of the first of the sample, (height, width, channels) each
    labels: IntArray | None = field(default=None, repr=False)  # None for segmentation, and so is `predicted`
    predicted: IntArray | None = field(default=None, repr=False)
    shares_right: FloatArray | None = field(default=None, repr=False)  # of an image's pixels; for segmentation alone
    domain_score: FloatArray | None = field(default=None, repr=False)  # None for a run without a calibration
    sample_embedding: FloatArray | None = field(default=None, repr=False)  # None if the network's layer is not named
    void: int | None = None  # the class that never counts
    mask_images: ByteArray | None = field(default=None, repr=False)
    mask_truth: IntArray | None = field(default=None, repr=False)  # classes, (n, H, W), as `mask_predicted`
    mask_predicted: IntArray | None = field(default=None, repr=False)
    mask_uncertainty: FloatArray | None = field(default=None, repr=False)  # the entropy of each pixel, in nats

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
