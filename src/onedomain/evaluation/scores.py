"""Scores of a trained network on a domain. Every image counts, also those of the last partial batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
import torch

from onedomain.components.predictive import Predictive
from onedomain.data.corruptions import Corruption
from onedomain.data.data_frame import data_frame
from onedomain.data.domain import Batch, Domain
from onedomain.data.memory import images_at_once
from onedomain.errors import OnedomainError, UserError
from onedomain.evaluation import measures
from onedomain.evaluation.calibration import Calibration
from onedomain.evaluation.counters import ConfidenceBins, DoubtHistogram, Overlaps
from onedomain.evaluation.gathering import Gathering
from onedomain.evaluation.outcome import Outcome

SMALLEST = 1e-300  # of a probability whose logarithm is taken


@dataclass(frozen=True)
class Scores:
    """How well one domain is classified, and how well the model knows it.

    `low` and `high` bound the accuracy with 95% confidence (Wilson's interval over images). `nll` is the mean
    negative log-likelihood in nats, `ece` the expected calibration error over 15 bins of confidence, `brier` the mean
    squared distance of the probabilities from the truth. `entropy` is the mean entropy of the predictions, in nats: how
    uncertain the model is on this domain. `error_auroc` is the chance that a wrong answer is more uncertain (by
    entropy) than a right one: None if all are right or all wrong. `aurc` is the mean error over all shares of answers
    kept, the most certain first. `domain_score` is the mean over images, `flagged` the share of images called out of
    domain: None for a model without a calibration.

    Where pixels have labels each of them is an answer, but void ones. `iou` is the intersection of prediction and truth
    by their union, for each class, from one confusion matrix over the domain; None for a class that the truth does not
    have. `miou` is the mean over the others, so that all methods are averaged over the same classes; `miou_low` and
    `miou_high` bound it with 95% confidence (a bootstrap over images).
    """

    domain: str
    split: str
    count: int
    accuracy: float
    low: float
    high: float
    nll: float
    ece: float
    brier: float
    error_auroc: float | None
    aurc: float
    entropy: float
    miou: float | None = None
    miou_low: float | None = None
    miou_high: float | None = None
    iou: dict[str, float | None] = field(default_factory=dict)
    domain_score: float | None = None
    flagged: float | None = None
    note: str = ""
    fingerprint: str = ""
    corruption: Corruption | None = None


@dataclass(frozen=True)
class Evaluation:
    """Scores of every domain, and their mean over those that count as unseen.

    `outcomes` are the answers that the scores are of, image by image; `missing` says why domains were not scored.
    """

    scores: dict[str, Scores]
    unseen: tuple[str, ...]
    outcomes: dict[str, Outcome] = field(default_factory=dict, repr=False)
    missing: tuple[str, ...] = ()

    def __getitem__(self, domain: str) -> Scores:
        return self.scores[domain]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def average(self, metric: str = "accuracy") -> float:
        """The plain mean of a metric over the unseen domains that have it; NaN if none has."""
        if not self.unseen:
            raise UserError("domains", "every one is seen", "at least one unseen domain")
        mean = mean_of([self.scores[name] for name in self.unseen], metric)
        return math.nan if mean is None else mean

    def to_frame(self) -> Any:
        """A row per domain, as a DataFrame of pandas."""
        left_out = ("iou", "corruption")
        return data_frame(
            [
                {name: value for name, value in vars(scores).items() if name not in left_out}
                | {"domain": name, "unseen": name in self.unseen}
                for name, scores in self.scores.items()
            ]
        )

    def rank_correlation(self) -> float | None:
        """Spearman's, over the unseen domains, between the domain score and the error: 1 if it ranks them as the
        accuracy lost does. None with fewer than three domains, or where all score the same.
        """
        from scipy.stats import spearmanr

        scored = [self.scores[name] for name in self.unseen if self.scores[name].domain_score is not None]
        pairs = [(scores.domain_score, 1 - scores.accuracy) for scores in scored]
        if len(pairs) < 3 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
            return None
        return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def mean_of(scores: Iterable[Scores], metric: str) -> float | None:
    """The plain mean of a metric over the domains that have it; None if none has."""
    known = [value for each in scores if (value := getattr(each, metric)) is not None]
    return fmean(known) if known else None


def score(
    predict: Callable[[torch.Tensor], Predictive],
    domain: Domain,
    *,
    calibration: Calibration | None = None,
    device: torch.device | str = "cpu",
    batch_size: int = 250,
    each: Callable[[int], None] = lambda images: None,
    gathering: Gathering | None = None,
) -> Scores:
    """Run over the whole domain once and count; `each` is told after every batch how many images are done.

    `batch_size` is the most images that are passed at once: fewer, if they are large. `gathering` collects on the same
    way what is said of each image.
    """
    bins = ConfidenceBins(measures.CALIBRATION_BINS)
    overlaps = Overlaps(len(domain.classes))
    answers: _Answers | DoubtHistogram = DoubtHistogram() if domain.dense else _Answers()
    loss = brier = entropy = 0.0
    done = counted = correct = 0
    domain_scores = []
    for batch in batches_in_order(domain, batch_size, device):
        predictive = predict(batch.images)
        probabilities, doubt, labels = predictive.probabilities, predictive.entropy, batch.labels
        if domain.dense:
            overlaps.add(labels, probabilities.argmax(1), domain.void)
        if probabilities.ndim > 2:  # one row a pixel
            probabilities = probabilities.movedim(1, -1).flatten(0, -2)
            doubt, labels = doubt.flatten(), labels.flatten()
        if domain.void is not None:
            counts = labels != domain.void
            probabilities, doubt, labels = probabilities[counts], doubt[counts], labels[counts]
        of_truth = probabilities.gather(1, labels[:, None])[:, 0]
        loss -= of_truth.clamp(min=SMALLEST).log().sum().item()
        brier += (probabilities.square().sum(1) - 2 * of_truth + 1).sum().item()
        entropy += doubt.double().sum().item()
        if not math.isfinite(loss + brier):
            raise OnedomainError(
                f"domain '{domain.name}' ({domain.split}): the network's outputs are not finite numbers"
            )
        confidence, predicted = probabilities.max(1)
        bins.add(confidence.double(), predicted == labels)
        counted, correct = counted + len(labels), correct + int((predicted == labels).sum())
        answers.add(predicted == labels, doubt)
        of_domain = None if calibration is None else calibration.score(predictive)
        if of_domain is not None:
            domain_scores.append(of_domain.cpu().numpy())
        if gathering is not None:
            gathering.add(batch, predictive, of_domain)
        done += len(batch.images)
        each(done)
    if counted == 0:
        raise UserError(f"domain '{domain.name}' ({domain.split})", "every pixel is void", "at least one that counts")
    # Pixels of one image are not independent: for dense labels, too, the interval counts images.
    low, high = measures.wilson_interval(correct / counted, len(domain))
    scored = np.concatenate(domain_scores) if calibration is not None else None
    iou = dict(zip(domain.classes, overlaps.intersection_over_union(), strict=True)) if domain.dense else {}
    miou_low, miou_high = overlaps.interval() if domain.dense else (None, None)
    return Scores(
        domain=domain.name,
        split=domain.split,
        count=len(domain),
        accuracy=correct / counted,
        low=low,
        high=high,
        nll=loss / counted,
        ece=bins.error(),
        brier=brier / counted,
        entropy=entropy / counted,
        error_auroc=answers.error_auroc(),
        aurc=answers.aurc(),
        miou=fmean(value for value in iou.values() if value is not None) if domain.dense else None,
        miou_low=miou_low,
        miou_high=miou_high,
        iou=iou,
        domain_score=None if scored is None else float(scored.mean()),
        flagged=None if scored is None or calibration is None else float((scored > calibration.threshold).mean()),
        note=domain.note,
        fingerprint=domain.fingerprint,
        corruption=domain.corruption,
    )


class _Answers:
    """Right and wrong answers with their doubt, one per image: few enough to keep."""

    def __init__(self) -> None:
        self.rights: list[measures.BoolArray] = []
        self.doubts: list[measures.FloatArray] = []

    def add(self, right: torch.Tensor, doubt: torch.Tensor) -> None:
        self.rights.append(right.cpu().numpy())
        self.doubts.append(doubt.cpu().numpy())

    def error_auroc(self) -> float | None:
        return measures.error_auroc(np.concatenate(self.rights), np.concatenate(self.doubts))

    def aurc(self) -> float:
        return measures.area_under_risk_coverage(np.concatenate(self.rights), np.concatenate(self.doubts))


def batches_in_order(
    domain: Domain, most: int, device: torch.device | str, dense: bool | None = None
) -> Iterator[Batch]:
    """All images once, in order, the last partial batch included; fewer than `most` at once if they are large.

    `dense` says whether the network answers for every pixel, where the domain has no labels that tell.
    """
    if not isinstance(most, int) or most < 1:
        raise UserError("batch_size", f"got {most!r:.30}", "a whole number from 1")
    height, width, _ = domain.image_shape
    classes = len(domain.classes) if (domain.dense if dense is None else dense) else 1
    size = images_at_once(height, width, most, classes=classes)
    for start in range(0, len(domain), size):
        yield domain.batch(range(start, min(start + size, len(domain))), device)
