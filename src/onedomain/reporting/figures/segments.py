"""Segmentation: images beside their masks and uncertainty, and the IoU of each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from onedomain.data.arrays import ByteArray, FloatArray
from onedomain.data.domain import IntArray
from onedomain.evaluation.masks import palette
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import Contender, contenders_of, first_answers
from onedomain.reporting.figures import style
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.runs.records import RunRecords

MOST_IMAGES = 10  # in all
OF_A_DOMAIN = 2  # images, where they fit
COLUMN = 1.35  # inches of a picture's width
NAME_SIZE = 7.5  # points, of the domain beside a row and of what is written below a picture
MOST_PANELS = 3  # domains whose classes get a panel of their own; of more, the unseen ones are averaged
STRIPE, STRIPES = 3, (255, 205)  # pixels, and greys: what marks void in the truth
FADED = 0.7  # how far the colours of void pixels go to white in a prediction
NO_PIXELS = "no run was scored on labels of pixels, or none kept its answers"


class Masked(Outcome):
    """An outcome with pictures of its first images."""

    mask_images: ByteArray
    mask_truth: IntArray
    mask_predicted: IntArray
    mask_uncertainty: FloatArray


@figure(
    "masks",
    "Images, truth, predictions and uncertainty",
    "Images of domains never seen, above, and the true class of each pixel, below; beside them what each method says, "
    "and below it how unsure it is (bright). Striped and faded pixels are void: they have no class and never count.",
    place=3,
)
def masks(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """Two rows for each image of an unseen domain, with the answers of each method's first run."""
    groups = contenders_of(runs, benchmark)
    domains = _unseen(groups, benchmark)
    of_a_domain = OF_A_DOMAIN if OF_A_DOMAIN * len(domains) <= MOST_IMAGES else 1
    found = [
        (name, outcomes, place)
        for name, outcomes in domains.items()
        for place in range(min(of_a_domain, *(len(outcome.mask_predicted) for outcome in outcomes)))
    ][:MOST_IMAGES]
    if not found:
        raise Missing(NO_PIXELS)
    handles = _handles([(outcomes, place) for _, outcomes, place in found])
    across = 1 + len(groups)
    width, (high, wide) = max(style.WIDTH, COLUMN * across), found[0][1][0].mask_images.shape[1:3]
    in_a_row = max(1, int(width // 1.15))
    extra = 0.55 + 0.18 * -(-len(handles) // in_a_row)
    row_height = COLUMN * high / wide
    figure, cells = style.panels(2 * len(found) * across, row_height + 0.2, across, extra=extra, width=width)
    for axes, name in zip(cells, ["image, truth", *(group.title for group in groups)], strict=False):
        axes.set_title(style.wrapped(name, 20))
    rows = iter(cells)
    for domain, outcomes, place in found:
        for number, (pixels, note) in enumerate(pictures(outcomes, place)):
            axes = next(rows)
            style.show_image(axes, pixels)
            axes.set_xlabel(note, fontsize=NAME_SIZE)
            if number == 0:  # written along its row, in lines that are not longer than the row is high
                letters = max(4, int(72 * row_height // (0.62 * NAME_SIZE)))
                axes.set_ylabel(style.wrapped(domain, letters, hyphens=True), fontsize=NAME_SIZE)
    figure.legend(handles=handles, loc="outside lower center", ncols=in_a_row, handlelength=1.2, columnspacing=1.0)
    return figure


def pictures(outcomes: Sequence[Masked], place: int) -> list[tuple[ByteArray, str]]:
    """Bytes of the image and of what each outcome says of it, then of the truth and of each uncertainty; with a note.

    Uncertainty is black where it is certain and white where it is clueless.
    """
    first = outcomes[0]
    colours, most = palette(first.classes), math.log(max(2, len(first.classes)))
    image, truth, pixels = first.sample[place], first.mask_truth[place].astype(np.int64), first.mask_images[place]
    void = (truth == first.void)[..., None]
    said, unsure = [], []
    for outcome in outcomes:
        colour = colours[outcome.mask_predicted[place].astype(np.int64)]
        pale = np.rint(colour + FADED * (255.0 - colour)).astype(np.uint8)
        said.append((np.where(void, pale, colour), f"{outcome.right[image]:.0%} of pixels right"))
        doubt = outcome.mask_uncertainty[place].astype(np.float32) / most
        grey = np.rint(255 * doubt.clip(0, 1)).astype(np.uint8)
        unsure.append((grey, f"{outcome.uncertainty[image]:.2f} nats per pixel"))
    # Void pixels of the truth are diagonal stripes: no class has these.
    stripes = np.where(np.indices(truth.shape).sum(0) // STRIPE % 2 == 0, *STRIPES).astype(np.uint8)
    striped = np.where(void, stripes[..., None], colours[np.where(void[..., 0], 0, truth)])
    shown = np.repeat(pixels[..., :1], 3, -1) if pixels.shape[-1] < 3 else pixels[..., :3]
    return [(shown, ""), *said, (striped, ""), *unsure]


def _handles(shown: Sequence[tuple[Sequence[Masked], int]]) -> list[Patch]:
    """A legend of the classes to be seen, and of void."""
    first = shown[0][0][0]
    truths = {label for outcomes, place in shown for label in np.unique(outcomes[0].mask_truth[place]).tolist()}
    said = (each.mask_predicted[place] for outcomes, place in shown for each in outcomes)
    numbers = (truths - {first.void}).union(*(np.unique(labels).tolist() for labels in said))
    colours = palette(first.classes) / 255
    found = [Patch(label=first.classes[each], facecolor=colours[each], edgecolor="black") for each in sorted(numbers)]
    if first.void in truths:
        found.append(Patch(label="void, not counted", facecolor="white", edgecolor="#999999", hatch="////"))
    return found


def _unseen(groups: Sequence[Contender], benchmark: str) -> dict[str, list[Masked]]:
    """The answers of each group's first run on the unseen domains that all of them have, on the same images."""
    found = {}
    for domain, first in groups[0].runs[0].outcomes(benchmark).items():
        answered = first_answers(groups, benchmark, domain, lambda outcome: outcome.mask_predicted is not None)
        if len(answered) == len(groups) and first.unseen:
            found[domain] = [cast(Masked, outcome) for _, outcome in answered]
    return found


@figure(
    "classes",
    "IoU of each class",
    "Of the pixels that are of a class or were called it, the share that is both. A class that a domain does not "
    "have is left out there.",
    place=4,
)
def classes(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A bar for each class and method, a panel for each domain; of several seeds the mean."""
    groups = contenders_of(runs, benchmark)
    found = _panels(runs, benchmark)
    names = list(dict.fromkeys(name for each in found for group in groups for name in _ious(group, each[1])))
    if not names:
        raise Missing("the records have no IoU of classes")
    labels = [group.title for group in groups]
    height = len(names) * max(0.2, 0.09 * len(groups) + 0.06) + 0.35
    figure, shown = style.panels(len(found), height, 1, legend=labels, x="intersection over union", percents="x")
    thick = 0.8 / len(groups)
    for (title, domains), axes in zip(found, shown, strict=True):
        for place, group in enumerate(groups):
            values = _ious(group, domains)
            y = [names.index(name) + (place - (len(groups) - 1) / 2) * thick for name in values]
            bars = axes.barh(y, list(values.values()), thick, label=group.title, edgecolor="white", linewidth=0.4)
            for bar in bars:
                bar.set(
                    facecolor=style.COLOURS[place % len(style.COLOURS)], hatch=style.HATCHES[place % len(style.HATCHES)]
                )
        axes.set_title(style.wrapped(title, 60), loc="left")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.grid(False, axis="y")
    style.legend_above(figure, labels)
    return figure


def _panels(runs: Sequence[RunRecords], benchmark: str) -> list[tuple[str, tuple[str, ...]]]:
    """Titles and domains: the unseen first; if they are many, all as one."""
    columns = compare(runs, benchmark).columns
    unseen = [column.name for column in columns if column.unseen]
    sources = [(f"{column.name} (source)", (column.name,)) for column in columns if not column.unseen]
    if len(columns) <= MOST_PANELS:
        return [*((domain, (domain,)) for domain in unseen), *sources]
    return [(f"mean over {len(unseen)} unseen domains", tuple(unseen)), *sources]


def _ious(group: Contender, domains: Sequence[str]) -> dict[str, float]:
    """The IoU of each class, over the runs and over those of the domains that have it."""
    found: dict[str, list[float]] = {}
    for rows in group.rows:
        for domain in domains:
            for row in rows.get(domain, {}).values():
                if "class" in row:
                    found.setdefault(row["class"], []).append(row["value"])
    return {name: fmean(values) for name, values in found.items()}
