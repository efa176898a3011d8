"""An accuracy over images and seeds, and whether two of them differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

NORMAL = 1.959964  # 95% of a normal distribution lie within so many deviations


@dataclass(frozen=True)
class Estimate:
    """A share that was measured in one run or, with several seeds, in several.

    `of_images` is the variance that the choice of test images adds. Seeds do not average it away: all of them are
    scored on the same images.
    """

    values: tuple[float, ...]  # one per run
    of_images: float
    recorded: tuple[float, float] | None = None  # the 95% interval over images, of one run on one domain

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """Over the seeds; None for a single one."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        """Over images."""
        half = NORMAL * math.sqrt(self.of_images)
        return self.recorded or (self.mean - half, self.mean + half)

    @property
    def of_seeds(self) -> float:
        """The variance of the mean that the choice of seeds adds: unknown, and counted as 0, for a single one."""
        return variance(self.values) / len(self.values) if len(self.values) > 1 else 0.0


def variance_of_images(low: float, high: float) -> float:
    """The variance that a 95% interval over images stands for."""
    return ((high - low) / (2 * NORMAL)) ** 2


def over_domains(estimates: Sequence[Estimate], same_images: bool = False) -> Estimate:
    """The plain mean over domains, run by run; every one of the estimates comes from the same runs.

    With `same_images` the domains are one set of images, changed in different ways: a lucky choice of them is lucky in
    every domain, and what it adds does not average away.
    """
    by_run = zip(*(estimate.values for estimate in estimates), strict=True)
    values = tuple(fmean(of_run) for of_run in by_run)
    if same_images:
        return Estimate(values, fmean(math.sqrt(estimate.of_images) for estimate in estimates) ** 2)
    return Estimate(values, sum(estimate.of_images for estimate in estimates) / len(estimates) ** 2)


def margin(first: Estimate, second: Estimate) -> float:
    """How far two means must lie apart to differ by more than chance, with 95% confidence.

    Welch's interval, in which the images count as drawn anew for each side: rather too wide than too narrow.
    """
    from scipy.stats import t

    seeds = [(each.of_seeds, len(each.values) - 1) for each in (first, second) if each.of_seeds > 0]
    total = first.of_images + second.of_images + sum(part for part, _ in seeds)
    if not seeds:
        return NORMAL * math.sqrt(total)
    freedom = total**2 / sum(part**2 / degrees for part, degrees in seeds)  # images are many: theirs is infinite
    return float(t.ppf(0.975, freedom)) * math.sqrt(total)


def too_close(first: Estimate, second: Estimate) -> bool:
    """Whether chance alone may explain the difference."""
    return abs(first.mean - second.mean) <= margin(first, second)
