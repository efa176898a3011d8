"""What a run says of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedomain.data.data_frame import data_frame
from onedomain.data.domain import IntArray
from onedomain.errors import UserError


@dataclass(frozen=True)
class Predictions:
    """What a model predicts of images: one class per image, the probability of every class, and the uncertainty.

    `probabilities` are the network's, and `labels` their largest. `uncertainty` is their entropy, in nats: 0 when
    certain, log(classes) when clueless. `mean_probabilities` are the mean of a model's Monte-Carlo draws,
    `predictive_entropy` is its entropy, and `mutual_information` what the draws disagree about, in nats too; of a model
    that draws nothing these are the probabilities, their entropy, and 0. `domain_score` says how unlike the source an
    image is, and `out_of_domain` whether 95% of held-out source images score lower; both are None for a run without a
    calibration. For dense outputs all but the probabilities (N, C, H, W) and these two are maps (N, H, W). `files` are
    the names of the images, if they were files.
    """

    labels: IntArray
    probabilities: np.ndarray
    uncertainty: np.ndarray
    classes: tuple[str, ...]
    mean_probabilities: np.ndarray
    predictive_entropy: np.ndarray
    mutual_information: np.ndarray
    domain_score: np.ndarray | None = None
    out_of_domain: np.ndarray | None = None
    files: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [self.classes[label] for label in self.labels.ravel()]

    def to_frame(self) -> Any:
        """A row per image, as a DataFrame of pandas; the probability of each class in a column `p/CLASS`."""
        if self.labels.ndim > 1:
            raise UserError("to_frame", "asked of pixels", "predictions of one label per image")
        rows = []
        for place, label in enumerate(self.labels):
            probabilities = self.probabilities[place]
            rows.append(
                {
                    **({"file": self.files[place]} if self.files else {}),
                    "label": self.classes[label],
                    "probability": probabilities[label],
                    "uncertainty": self.uncertainty[place],
                    "predictive_entropy": self.predictive_entropy[place],
                    "mutual_information": self.mutual_information[place],
                    "domain_score": None if self.domain_score is None else self.domain_score[place],
                    "out_of_domain": None if self.out_of_domain is None else self.out_of_domain[place],
                    **{f"p/{name}": value for name, value in zip(self.classes, probabilities, strict=True)},
                }
            )
        return data_frame(rows)
