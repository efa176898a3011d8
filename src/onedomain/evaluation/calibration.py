"""Where the source ends: the domain score of an image, and the threshold that 95% of held-out source images keep."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onedomain.components.predictive import Predictive
from onedomain.errors import UserError
from onedomain.evaluation.threshold import Threshold, check_threshold

LEVEL = 0.95  # share of held-out source images that count as in the domain
ROUNDING = 1e-6  # the image that gave the threshold must not pass it by the last bits of its own score
MOST_IMAGES = 2000  # of the source, and of its held-out part, that a calibration looks at
# In directions in which the source hardly varies, a harmless change such as another colour is many deviations long.
# Of all directions and of the leading 8, 16 and 64, 16 followed the accuracy lost on `digits-graded` best.
LEADING = 16


@dataclass(frozen=True)
class Calibration:
    """What makes a score mean something: how source images score that training has not seen.

    The domain score of an image is, for a model with φ, the Mahalanobis distance of its (μ, σ) at the last perturbed
    layer, averaged over each channel, from those of the training images, along their 16 leading directions and divided
    by √16, so that the source lies near 1; for other models it is the entropy of the prediction. An image is
    `out_of_domain` if it scores above `threshold`, as 5% of held-out source images do.
    """

    threshold: float
    images: int  # held-out source images that the threshold was found with
    held_out: bool  # False: there were none, and training images were taken, which score too low
    mean: Tensor | None = None  # of the statistics of the training images, (F,)
    axes: Tensor | None = None  # directions in which they vary most, by their deviations there, (F, ≤16)

    def score(self, predictive: Predictive) -> Tensor:
        """The domain score of each image, (N,)."""
        said = predictive.statistics
        if self.mean is not None and said is not None and said.shape[1:] != self.mean.shape:
            given = f"is of {len(self.mean)} statistics, and the model has {said.shape[1]}"
            raise UserError("calibration", given, "the one of this run")
        return domain_score(predictive, self.mean, self.axes)

    def state_dict(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Calibration:
        """What `state_dict` gave. One with other statistics, of an earlier version, is refused: its scores differ."""
        others = [name for name, value in state.items() if name not in cls.__dataclass_fields__ and value is not None]
        if others:
            raise UserError(
                "calibration", f"of another version ({', '.join(map(str, others))})", "a run trained by this one"
            )
        told = {name: state.get(name) for name in cls.__dataclass_fields__}
        found = check_threshold("calibration", {name: told[name] for name in Threshold.model_fields})
        mean, axes = told["mean"], told["axes"]
        if (mean is None) != (axes is None):
            raise UserError("calibration", "has a mean or axes alone", "both, or none")
        if mean is not None and axes is not None:
            shapes = [getattr(each, "shape", None) for each in (mean, axes)]
            if not all(isinstance(each, Tensor) for each in (mean, axes)):
                raise UserError("calibration", "has a mean or axes that are no tensors", "finite numbers of 64 bits")
            if not (mean.ndim == 1 and axes.ndim == 2 and len(mean) == len(axes)):
                raise UserError("calibration", f"has mean and axes of shapes {shapes}", "(F,) and (F, k)")
            if not all(each.dtype == torch.float64 and bool(each.isfinite().all()) for each in (mean, axes)):
                raise UserError("calibration", "has a mean or axes that are not finite", "finite numbers of 64 bits")
        return cls(found.threshold, found.images, found.held_out, mean, axes)


def domain_score(predictive: Predictive, mean: Tensor | None, axes: Tensor | None) -> Tensor:
    """Mahalanobis distance of the statistics, by the root of the number of axes; else entropy, of pixels its mean."""
    if mean is None or axes is None or predictive.statistics is None:
        scores = predictive.entropy
        return scores if scores.dim() == 1 else scores.flatten(1).mean(1)
    return ((predictive.statistics.double() - mean) @ axes).square().mean(1).sqrt()


def calibrate(
    source: Iterable[Predictive],
    held_out: Iterable[Predictive],
    has_held_out: bool,
) -> Calibration:
    """Learn what the source looks like from training images, and where it ends from images that were held out."""
    statistics: list[Tensor] = []
    for each in source:
        if each.statistics is None:  # nor have the others any: there is nothing to learn from them
            break
        statistics.append(each.statistics)
    mean = axes = None
    if statistics:
        values = torch.cat(statistics).double()
        mean = values.mean(0)
        axes = leading_axes(values)
    scores = torch.cat([domain_score(each, mean, axes) for each in held_out]).sort().values
    # Conformal: with n ≥ 19 scores, the next one from the same domain exceeds this one with a chance of at most 5%.
    place = min(len(scores), math.ceil(LEVEL * (len(scores) + 1))) - 1
    threshold = float(scores[place]) * (1 + ROUNDING)
    return Calibration(threshold, len(scores), has_held_out, mean, axes)


def leading_axes(values: Tensor) -> Tensor:
    """The directions in which rows vary most, at most `LEADING`: (F, k); along each, the rows have the deviation 1.

    Columns are brought to one scale first: none leads for its unit.
    """
    scale = values.std(0, correction=0).clamp(min=1e-6)
    _, lengths, directions = torch.linalg.svd((values - values.mean(0)) / scale, full_matrices=False)
    deviations = (lengths[:LEADING] / math.sqrt(len(values))).clamp(min=1e-3)
    return directions[:LEADING].t() / scale[:, None] / deviations
