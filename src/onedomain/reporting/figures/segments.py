"""Segmentation: images beside their masks and uncertainty, and the IoU of each class."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from onedomain.evaluation.masks import palette
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import Contender, contenders_of, first_answers
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.figures.style import (
    COLOURS,
    HATCHES,
    WIDTH,
    legend_above,
    panels,
    show_image,
    wrapped,
)
from onedomain.reporting.segmented import Segmented, segmented
from onedomain.runs.records import RunRecords

MOST_IMAGES = 10  # in all
OF_A_DOMAIN = 2  # images, where they fit
COLUMN = 1.35  # inches of a picture's width
NAME_SIZE = 7.5  # points, of the domain beside a row and of what is written below a picture
MOST_PANELS = 3  # domains whose classes get a panel of their own; of more, the unseen ones are averaged
NO_PIXELS = "no run was scored on labels of pixels, or none kept its answers"


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
    found = [(name, each) for name, outcomes in domains.items() for each in segmented(outcomes, of_a_domain)]
    found = found[:MOST_IMAGES]
    if not found:
        raise Missing(NO_PIXELS)
    classes = next(iter(domains.values()))[0].classes
    handles = _handles(classes, [picture for _, picture in found])
    across = 1 + len(groups)
    width, (high, wide, _) = max(WIDTH, COLUMN * across), found[0][1].image.shape
    in_a_row = max(1, int(width // 1.15))
    extra = 0.55 + 0.18 * -(-len(handles) // in_a_row)
    row_height = COLUMN * high / wide
    figure, cells = panels(2 * len(found) * across, row_height + 0.2, across, extra=extra, width=width)
    for axes, name in zip(cells, ["image, truth", *(group.title for group in groups)], strict=False):
        axes.set_title(wrapped(name, 20))
    rows = iter(cells)
    for domain, picture in found:
        shown = [(picture.image, ""), *zip(picture.said, picture.right, strict=True)]
        shown += [(picture.truth, ""), *zip(picture.unsure, picture.doubt, strict=True)]
        for place, (pixels, note) in enumerate(shown):
            axes = next(rows)
            show_image(axes, pixels)
            axes.set_xlabel(note, fontsize=NAME_SIZE)
            if place == 0:  # written along its row, in lines that are not longer than the row is high
                letters = max(4, int(72 * row_height // (0.62 * NAME_SIZE)))
                axes.set_ylabel(wrapped(domain, letters, hyphens=True), fontsize=NAME_SIZE)
    figure.legend(handles=handles, loc="outside lower center", ncols=in_a_row, handlelength=1.2, columnspacing=1.0)
    return figure


def _handles(classes: Sequence[str], pictures: Sequence[Segmented]) -> list[Patch]:
    """A legend of the classes to be seen, and of void."""
    numbers = sorted({number for picture in pictures for number in picture.classes})
    colours = palette(classes) / 255
    handles = [Patch(label=classes[number], facecolor=colours[number], edgecolor="black") for number in numbers]
    if any(picture.void for picture in pictures):
        handles.append(Patch(label="void, not counted", facecolor="white", edgecolor="#999999", hatch="////"))
    return handles


def _unseen(groups: Sequence[Contender], benchmark: str) -> dict[str, list[Outcome]]:
    """The answers of each group's first run on the unseen domains that all of them have, on the same images."""
    found = {}
    for domain, first in groups[0].runs[0].outcomes(benchmark).items():
        answered = first_answers(groups, benchmark, domain)
        if len(answered) == len(groups) and first.unseen and first.dense:
            found[domain] = [outcome for _, outcome in answered]
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
    figure, shown = panels(len(found), height, 1, legend=labels, x="intersection over union", percents="x")
    thick = 0.8 / len(groups)
    for (title, domains), axes in zip(found, shown, strict=True):
        for place, group in enumerate(groups):
            values = _ious(group, domains)
            y = [names.index(name) + (place - (len(groups) - 1) / 2) * thick for name in values]
            bars = axes.barh(y, list(values.values()), thick, label=group.title, edgecolor="white", linewidth=0.4)
            for bar in bars:
                bar.set(facecolor=COLOURS[place % len(COLOURS)], hatch=HATCHES[place % len(HATCHES)])
        axes.set_title(wrapped(title, 60), loc="left")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.grid(False, axis="y")
    legend_above(figure, labels)
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
