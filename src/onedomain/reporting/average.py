"""What "average unseen" means, everywhere: over the unseen domains that all compared runs have on the same images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]  # records of one run, by domain and metric


def shared_domains(runs: Sequence[Scores]) -> list[str]:
    """The domains that every run was scored on, on the same images, in the order of the first run."""
    return [
        domain
        for domain in (runs[0] if runs else ())
        if all(domain in run for run in runs) and len({fingerprint(run[domain]) for run in runs}) == 1
    ]


def fingerprint(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Of the images of one domain, from the records of all its metrics."""
    return str(next(iter(metrics.values()))["data"])


def mean(values: Iterable[float | None]) -> float | None:
    """The plain mean; None if one value is missing, or all."""
    each = list(values)
    known = [value for value in each if value is not None]
    return fmean(known) if known and len(known) == len(each) else None


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """The plain mean of those that are there; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def average(scores: Scores, domains: Iterable[str], metric: str) -> float | None:
    """The plain mean of one run's metric over domains; None if one of them lacks it."""
    return mean(scores.get(domain, {}).get(metric, {}).get("value") for domain in domains)
