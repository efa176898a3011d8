"""What the runs answered image by image: how many mistakes came with a warning, and images to look at."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from onedomain.data.corruptions import CATEGORIES, SEVERITIES
from onedomain.errors import UserError
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.comparison import Column, Comparison
from onedomain.reporting.contenders import Contender
from onedomain.runs.layout import CALIBRATION
from onedomain.runs.records import RunRecords

MOST_CARDS = 12  # images shown of a domain
OF_EACH_KIND = 3  # right and wrong answers of every method that are looked for among the kept images

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Warnings:
    """Shares of wrong and of right answers that were flagged as out of domain; None without such answers."""

    of_wrong: float | None
    of_right: float | None


@dataclass(frozen=True)
class Answer:
    """What one method says of one image. For segmentation `right` is None and `said` a share of pixels."""

    title: str
    said: str
    right: bool | None
    confidence: float
    entropy: float  # nats
    doubt: float  # entropy as a share of the largest there can be
    flagged: bool | None


@dataclass(frozen=True)
class Card:
    """An image with what is on it and what each method says."""

    source: str  # a data: address
    truth: str | None
    height: int
    width: int
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Gallery:
    domain: str
    role: str
    note: str
    cards: tuple[Card, ...]


def flags(run: RunRecords, outcome: Outcome) -> BoolArray | None:
    """Which images were called out of domain; None for a run without a calibration."""
    path = run.folder / CALIBRATION
    if outcome.domain_score is None or not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            threshold = float(dict(json.loads(file.metadata()["structure"])["dict"])["threshold"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise UserError(str(path), "has no threshold", "the file that onedomain train wrote") from None
    return np.asarray(outcome.domain_score > threshold)


def warnings(contender: Contender, benchmark: str, domain: str) -> Warnings | None:
    """Over all images of a domain and all seeds; None where a run kept no answers, or for segmentation."""
    rights, flagged = [], []
    for run in contender.runs:
        outcome = answers_of(run, benchmark, domain)
        found = None if outcome is None or outcome.dense else flags(run, outcome)
        if outcome is None or found is None:
            return None
        rights.append(outcome.right == 1)
        flagged.append(found)
    right, warned = np.concatenate(rights), np.concatenate(flagged)
    return Warnings(_share(warned[~right]), _share(warned[right]))


def mean_warnings(contender: Contender, benchmark: str, domains: Sequence[str]) -> Warnings | None:
    """The plain mean over domains, as of every other metric; None if one of them has no warnings."""
    each = [warnings(contender, benchmark, domain) for domain in domains]
    known = [found for found in each if found is not None]
    if not known or len(known) < len(each):
        return None
    return Warnings(_mean([found.of_wrong for found in known]), _mean([found.of_right for found in known]))


def _mean(values: Sequence[float | None]) -> float | None:
    """Of the domains that have such answers at all."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _share(values: BoolArray) -> float | None:
    return float(values.mean()) if len(values) else None


def answers_of(run: RunRecords, benchmark: str, domain: str) -> Outcome | None:
    """What the run answered on a domain; None if that was not kept."""
    outcome = run.outcomes(benchmark).get(domain)
    if outcome is None:
        return None
    columns = [outcome.confidence, outcome.uncertainty, outcome.right, outcome.domain_score]
    fits = all(column is None or column.shape == (outcome.count,) for column in columns)
    images, sample = outcome.sample_images, outcome.sample
    pictured = images.ndim == 4 and images.dtype == np.uint8 and len(images) <= len(sample)
    inside = not len(sample) or (sample.min() >= 0 and sample.max() < outcome.count)
    labels = [column for column in (outcome.labels, outcome.predicted) if column is not None and len(column)]
    if not (fits and pictured and inside and all(column.max() < len(outcome.classes) for column in labels)):
        given = f"the answers on {domain} do not fit together"
        raise UserError(str(run.folder), given, f"score the run again: {run.evaluate_command(benchmark)}")
    return outcome


def galleries(comparison: Comparison) -> list[Gallery]:
    """Images of every domain whose answers were kept, with the answers of each method's first run."""
    found = []
    for column in _looked_at(comparison):
        answered = []
        for contender in comparison.contenders:
            outcome = answers_of(contender.runs[0], comparison.benchmark, column.name)
            if outcome is not None and len(outcome.sample_images):
                answered.append((contender, outcome))
        # Runs that were scored on other images than the first cannot stand beside it.
        same = [(each, outcome) for each, outcome in answered if outcome.fingerprint == answered[0][1].fingerprint]
        if same:
            found.append(Gallery(column.name, column.role, column.note, _cards(same)))
    return found


def _looked_at(comparison: Comparison) -> list[Column]:
    """All domains; of corruptions, which are too many to look at, the first of each category at its worst."""
    if not comparison.corrupted:
        return list(comparison.columns)
    shown = {f"{kinds[0]}-{SEVERITIES[-1]}" for kinds in CATEGORIES.values()}
    return [column for column in comparison.columns if not column.unseen or column.name in shown]


def _cards(answered: Sequence[tuple[Contender, Outcome]]) -> tuple[Card, ...]:
    first = answered[0][1]
    flagged = [flags(contender.runs[0], outcome) for contender, outcome in answered]
    cards = []
    sample = first.sample[: len(first.sample_images)]
    for place in choose([outcome.right[sample] for _, outcome in answered]):
        image = sample[place]
        pixels = first.sample_images[place]
        cards.append(
            Card(
                source=as_data_address(pixels),
                truth=None if first.labels is None else first.classes[first.labels[image]],
                height=pixels.shape[0],
                width=pixels.shape[1],
                answers=tuple(
                    _answer(contender.title, outcome, image, None if found is None else bool(found[image]))
                    for (contender, outcome), found in zip(answered, flagged, strict=True)
                ),
            )
        )
    return tuple(cards)


def _answer(title: str, outcome: Outcome, image: int, flagged: bool | None) -> Answer:
    entropy = float(outcome.uncertainty[image])
    if outcome.predicted is None:
        said, right = f"{100 * outcome.right[image]:.0f}% of pixels", None
    else:
        said, right = outcome.classes[outcome.predicted[image]], bool(outcome.right[image])
    most = math.log(max(2, len(outcome.classes)))
    doubt = min(1.0, max(0.0, entropy / most))
    return Answer(title, said, right, float(outcome.confidence[image]), entropy, doubt, flagged)


def choose(rights: Sequence[Any], most: int = MOST_CARDS, of_each: int = OF_EACH_KIND) -> list[int]:
    """The first images, in order, that show each method right and wrong `of_each` times, as far as there are such.

    `rights` holds, of each method, 1 for the images it has right and 0 for the others; for segmentation,
    shares, of which one half and more counts as right, and NaN for images without a pixel that counts.

    >>> choose([[1, 1, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1]], of_each=1)
    [0, 3]
    """
    chosen: list[int] = []
    shown = [{True: 0, False: 0} for _ in rights]
    for place in range(len(rights[0])):
        kinds = [bool(right[place] >= 0.5) for right in rights]
        counts = not any(math.isnan(right[place]) for right in rights)
        if (
            counts
            and len(chosen) < most
            and any(count[kind] < of_each for count, kind in zip(shown, kinds, strict=True))
        ):
            chosen.append(place)
            for count, kind in zip(shown, kinds, strict=True):
                count[kind] += 1
    return chosen


def as_data_address(pixels: np.ndarray) -> str:
    """Bytes of (height, width, channels) as a PNG that is part of the page."""
    from PIL import Image

    shown = pixels[..., 0] if pixels.shape[2] in (1, 2) else pixels[..., :3]
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(shown)).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
