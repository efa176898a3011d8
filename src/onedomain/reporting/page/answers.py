"""What the runs answered image by image: how many mistakes came with a warning, and images to look at."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onedomain.data.corruptions import CATEGORIES, SEVERITIES, Corruption
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.average import mean_of_known
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender, first_answers
from onedomain.runs.records import RunRecords

MOST_CARDS = 12  # images shown of a domain
SMALL = 64  # pixels of a side, up to which an image is shown as squares, not smoothed
OF_EACH_KIND = 3  # right and wrong answers of every method that are looked for among the kept images

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


class Warnings(NamedTuple):
    """Shares of wrong and of right answers that were flagged as out of domain; None without such answers."""

    of_wrong: float | None
    of_right: float | None


def flags(run: RunRecords, outcome: Outcome) -> BoolArray | None:
    """Which images were called out of domain; None for a run without a calibration."""
    threshold = run.threshold
    if outcome.domain_score is None or threshold is None:
        return None
    return np.asarray(outcome.domain_score > threshold)


def warnings(contender: Contender, benchmark: str, domains: Sequence[str]) -> Warnings | None:
    """Over all images and seeds, the plain mean over domains, as of every other metric.

    None if a run kept no answers on one of them, or for segmentation.
    """
    found = []
    for domain in domains:
        rights, flagged = [], []
        for run in contender.runs:
            outcome = run.outcomes(benchmark).get(domain)
            flags_of = None if outcome is None or outcome.dense else flags(run, outcome)
            if outcome is None or flags_of is None:
                return None
            rights.append(outcome.right == 1)
            flagged.append(flags_of)
        right, warned = np.concatenate(rights), np.concatenate(flagged)
        found.append([float(of.mean()) if len(of) else None for of in (warned[~right], warned[right])])
    # Of the domains that have such answers at all.
    return Warnings(*map(mean_of_known, zip(*found, strict=True))) if found else None


def galleries(comparison: Comparison) -> list[dict[str, Any]]:
    """Images of every domain whose answers were kept, with the answers of each method's first run."""
    found = []
    worst = [Corruption(kinds[0], SEVERITIES[-1]) for kinds in CATEGORIES.values()]
    for column in comparison.columns:
        if comparison.corrupted and column.unseen and column.corruption not in worst:
            continue  # they are too many to look at: the first of each category at its worst stands for the others
        answered = first_answers(
            comparison.contenders, comparison.benchmark, column.name, lambda outcome: len(outcome.sample_images) > 0
        )
        if answered:
            note = " · ".join(filter(None, (column.role, column.note)))
            found.append({"domain": column.name, "note": note, "cards": _cards(column.name, answered)})
    return found


def _cards(domain: str, answered: Sequence[tuple[Contender, Outcome]]) -> list[dict[str, Any]]:
    """Images, each with what is on it and what each method says."""
    first = answered[0][1]
    flagged = [flags(contender.runs[0], outcome) for contender, outcome in answered]
    cards = []
    sample = first.sample[: len(first.sample_images)]
    for place in choose([outcome.right[sample] for _, outcome in answered]):
        image, pixels = sample[place], first.sample_images[place]
        truth = None if first.labels is None else first.classes[first.labels[image]]
        answers = [
            _answer(contender.title, outcome, image, None if found is None else bool(found[image]))
            for (contender, outcome), found in zip(answered, flagged, strict=True)
        ]
        wrong = [answer for answer in answers if answer["right"] is False]
        silent = any(answer["flagged"] is False for answer in wrong)
        cards.append(
            {
                "source": as_data_address(pixels),
                "alt": f"{domain} image" + ("" if truth is None else f" of {truth}"),
                "truth": truth,
                "height": pixels.shape[0],
                "width": pixels.shape[1],
                "small": max(pixels.shape[:2]) <= SMALL,
                "kinds": "silent wrong" if silent else "wrong" if wrong else "",  # what the filter asks for
                "answers": answers,
            }
        )
    return cards


def _answer(title: str, outcome: Outcome, image: int, flagged: bool | None) -> dict[str, Any]:
    """What one method says of one image. For segmentation `right` is None and `said` a share of pixels."""
    entropy = float(outcome.uncertainty[image])
    if outcome.predicted is None:
        said, right = f"{outcome.right[image]:.0%} of pixels", None
    else:
        said, right = outcome.classes[outcome.predicted[image]], bool(outcome.right[image])
    most = math.log(max(2, len(outcome.classes)))
    return {
        "title": title,
        "said": said,
        "right": right,
        "sure": f"{outcome.confidence[image]:.0%}",
        "flagged": flagged,
        "doubt": round(100 * min(1.0, max(0.0, entropy / most))),  # as a share of the largest entropy there can be
        "entropy": f"{entropy:.2f}",
    }


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
