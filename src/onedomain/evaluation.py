"""Scores of a trained network on a domain. Every image counts, also those of the last partial batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

import torch

from onedomain.data.domain import Batch, Domain
from onedomain.errors import OnedomainError, UserError

CALIBRATION_BINS = 15
METRICS = ("accuracy", "nll", "ece")


@dataclass(frozen=True)
class Scores:
    """How well one domain is classified.

    `low` and `high` bound the accuracy with 95% confidence (Wilson's interval over images). `nll` is the mean
    negative log-likelihood in nats, `ece` the expected calibration error over 15 bins of confidence.
    """

    domain: str
    split: str
    count: int
    accuracy: float
    low: float
    high: float
    nll: float
    ece: float
    note: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Evaluation:
    """Scores of every domain, and their mean over those that count as unseen."""

    scores: dict[str, Scores]
    unseen: tuple[str, ...]

    def __getitem__(self, domain: str) -> Scores:
        return self.scores[domain]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def average(self, metric: str = "accuracy") -> float:
        """The plain mean of a metric over the unseen domains."""
        if not self.unseen:
            raise UserError("domains", "every one is seen", "at least one unseen domain")
        return fmean(getattr(self.scores[name], metric) for name in self.unseen)


def score(
    logits_of: Callable[[torch.Tensor], torch.Tensor],
    domain: Domain,
    *,
    device: torch.device | str = "cpu",
    batch_size: int = 250,
    each: Callable[[int], None] = lambda images: None,
) -> Scores:
    """Run over the whole domain once and count; `each` is told the number of images of every batch done."""
    from torchmetrics.classification import MulticlassCalibrationError

    calibration = MulticlassCalibrationError(num_classes=len(domain.classes), n_bins=CALIBRATION_BINS, norm="l1")
    correct = counted = 0
    loss = 0.0
    for batch in batches_in_order(domain, batch_size, device):
        logits = logits_of(batch.images)
        labels = batch.labels
        if logits.ndim > 2:  # one row a pixel
            logits, labels = logits.movedim(1, -1).flatten(0, -2), labels.flatten()
        if domain.void is not None:
            logits, labels = logits[labels != domain.void], labels[labels != domain.void]
        log_probabilities = logits.double().log_softmax(1)
        loss -= log_probabilities.gather(1, labels[:, None]).sum().item()
        correct += int((logits.argmax(1) == labels).sum())
        counted += len(labels)
        calibration.update(log_probabilities.exp().float().cpu(), labels.cpu())
        each(len(batch.images))
    if counted == 0:
        raise UserError(f"domain '{domain.name}' ({domain.split})", "every pixel is void", "at least one that counts")
    if not math.isfinite(loss):
        raise OnedomainError(f"domain '{domain.name}' ({domain.split}): the network's outputs are not finite numbers")
    # Pixels of one image are not independent: for dense labels, too, the interval counts images.
    low, high = wilson_interval(correct / counted, len(domain))
    return Scores(
        domain=domain.name,
        split=domain.split,
        count=len(domain),
        accuracy=correct / counted,
        low=low,
        high=high,
        nll=loss / counted,
        ece=float(calibration.compute()),
        note=domain.note,
        fingerprint=domain.fingerprint,
    )


def batches_in_order(domain: Domain, batch_size: int, device: torch.device | str) -> Iterator[Batch]:
    """All images once, in order, the last partial batch included."""
    for start in range(0, len(domain), batch_size):
        yield domain.batch(range(start, min(start + batch_size, len(domain))), device)


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
