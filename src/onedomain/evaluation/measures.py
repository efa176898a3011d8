"""Measures of how well answers are known, on plain arrays: reports need them too, and no torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
CALIBRATION_BINS = 15
METRICS = ("accuracy", "miou", "nll", "ece", "brier", "entropy", "error_auroc", "aurc", "domain_score", "flagged")


def error_auroc(right: BoolArray, doubt: FloatArray) -> float | None:
    """The chance that a wrong answer is more doubtful than a right one, ties counting half; None without both kinds.

    >>> error_auroc(np.array([True, False, True]), np.array([0.1, 0.9, 0.2]))
    1.0
    """
    from scipy.stats import rankdata

    wrong = int((~right).sum())
    if wrong in (0, len(right)):
        return None
    ranks = rankdata(doubt)
    return float((ranks[~right].sum() - wrong * (wrong + 1) / 2) / (wrong * (len(right) - wrong)))


def area_under_risk_coverage(right: BoolArray, doubt: FloatArray) -> float:
    """The mean, over n = 1 … N, of the error among the n least doubtful answers; equally doubtful ones share theirs.

    >>> round(area_under_risk_coverage(np.array([True, True, False]), np.array([0.1, 0.2, 0.9])), 4)
    0.1111
    """
    return float(risk_over_coverage(1.0 - right, doubt).mean())


def risk_over_coverage(errors: FloatArray, doubt: FloatArray) -> FloatArray:
    """For n = 1 … N, the mean error among the n least doubtful answers; equally doubtful ones share theirs.

    >>> risk_over_coverage(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.5, 0.5, 0.9])).round(2).tolist()
    [0.0, 0.25, 0.33, 0.5]
    """
    _, group, size = np.unique(doubt, return_inverse=True, return_counts=True)
    shared = np.bincount(group, weights=errors) / size  # the order inside a tie says nothing
    return np.cumsum(shared[np.sort(group)]) / np.arange(1, len(errors) + 1)


def wilson_interval(rate: float, count: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95% interval of a rate seen in `count` trials; unlike the normal one it is right near 0 and 1.

    >>> low, high = wilson_interval(0.5, 100)
    >>> round(low, 4), round(high, 4)
    (0.4038, 0.5962)
    """
    centre = rate + z * z / (2 * count)
    spread = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
