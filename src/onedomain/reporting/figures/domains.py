"""Where a model holds up, and whether it knows: accuracy (or mIoU) per domain, and against the domain score."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from onedomain.data.corruptions import CATEGORIES
from onedomain.evaluation.corruption_error import from_records
from onedomain.reporting.comparison import Comparison, compare
from onedomain.reporting.contenders import Contender, contenders_of
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.figures.style import (
    SOURCE,
    UNSEEN,
    legend_above,
    legend_height,
    look,
    panels,
    percent,
    wrapped,
)
from onedomain.reporting.labels import place_labels
from onedomain.reporting.table import LONGEST_NAME, shortened
from onedomain.runs.records import RunRecords

AVERAGE = "average unseen"
MOST_NAMED = 10  # domains of a panel; of more of them, the outermost are named
NAME_HEIGHT = 9.6  # points, of a line with letters of 8

Points = dict[str, tuple[float, float]]  # domain score and accuracy or mIoU, by domain


@figure(
    "accuracy",
    "Accuracy per domain",
    "How often each method is right on the domain it was trained on and on those it has never seen. Whiskers show "
    "one deviation over seeds or, for a single run, the 95% interval.",
    place=1,
    with_miou="How well each method finds the pixels of each class (mean intersection over union), on the domain "
    "it was trained on and on those it has never seen. Whiskers show one deviation over seeds or, for a single "
    "run, the 95% interval of a bootstrap over images.",
)
def accuracy(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A row for each domain, a marker for each method; whiskers are one deviation over seeds, or for a single seed the
    95% interval over images. Corruptions are many: they have one row per category and, with a single seed, no whiskers.
    """
    comparison = compare(runs, benchmark)
    groups, metric = contenders_of(runs, benchmark), comparison.metric
    columns = sorted(comparison.columns, key=lambda column: column.unseen)
    categories = CATEGORIES if comparison.corrupted else {}
    rows = [*(each.name for each in columns if not (categories and each.unseen)), *categories, AVERAGE]
    height = max(0.3, 0.13 * len(groups) + 0.12)
    figure, (axes,) = panels(1, height=height * len(rows), extra=0.5 + legend_height([g.title for g in groups]))
    for place, group in enumerate(groups):
        found = {column.name: group.values(column.name, metric.name) for column in columns}
        found[AVERAGE] = [] if group.adapted_to else comparison.averages(group)
        for category, kinds in categories.items():
            means = [from_records(run.results, benchmark).of_kinds(kinds) for run in group.runs]
            found[category] = [mean for mean in means if mean is not None]
        offset = (place - (len(groups) - 1) / 2) * min(0.2, 0.8 / len(groups))
        x, y, whiskers = [], [], []
        for row, domain in enumerate(rows):
            if not found.get(domain):
                continue
            mean = fmean(found[domain])
            spread = stdev(found[domain]) if len(found[domain]) > 1 else 0.0
            low, high = comparison.interval(group, domain) or (mean - spread, mean + spread)
            x.append(mean)
            y.append(row + offset)
            # An interval of a single image is its value, but for the last digit.
            whiskers.append((max(0.0, mean - low), max(0.0, high - mean)))
        style = look(place) | {"linestyle": "none"}
        axes.errorbar(
            x, y, xerr=list(zip(*whiskers, strict=True)), label=group.title, elinewidth=1.0, capsize=2, **style
        )
    home = [column.name for column in comparison.sources]
    names = [wrapped(f"{row} (source)" if row in home else row, LONGEST_NAME, lines=2) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.xaxis.set_major_formatter(percent)
    axes.axhline(len(rows) - 1.5, color="#555555", linewidth=0.8)
    axes.grid(False, axis="y")
    axes.set_xlabel(metric.title)
    legend_above(figure)
    return figure


@figure(
    "accuracy-uncertainty",
    "Accuracy against uncertainty",
    "Each point is a domain: the further right, the less it looks like the source to the model. A model that knows "
    "where it fails has its points fall from top left to bottom right, and a rank correlation near 1.",
    place=2,
    with_miou="Each point is a domain: the further right, the less it looks like the source to the model. A model "
    "that knows where it fails has its points fall from top left to bottom right.",
)
def accuracy_and_uncertainty(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """Each domain by the mean of its domain score and its accuracy, a panel for each method."""
    comparison = compare(runs, benchmark)
    groups = [(group, points) for group in contenders_of(runs, benchmark) if (points := _points(group, comparison))]
    if not groups:
        raise Missing("no run has a domain score: they were trained without a calibration")
    figure, shown = panels(len(groups), height=2.3, columns=1 if len(groups) == 1 else 2, extra=0.3, sharey=True)
    for (group, points), axes in zip(groups, shown, strict=True):
        _scatter(axes, points, group, comparison)
    figure.supxlabel("domain score: how unlike the source the images look to the model", fontsize=9)
    figure.supylabel(comparison.metric.title, fontsize=9)
    figure.draw_without_rendering()  # names are placed when it is known where their points are
    for (_, points), axes in zip(groups, shown, strict=True):
        _name_points(axes, points, 72.0 / figure.dpi)
    return figure


def _scatter(axes: Axes, points: Points, group: Contender, comparison: Comparison) -> None:
    unseen = {column.name: column.unseen and column.name not in group.adapted_to for column in comparison.columns}
    for wanted, colour, marker in ((False, SOURCE, "o"), (True, UNSEEN, "s")):
        chosen = [point for domain, point in points.items() if unseen[domain] is wanted]
        if chosen:
            axes.plot(*zip(*chosen, strict=True), marker, color=colour, markeredgecolor="black", markeredgewidth=0.6)
    title = wrapped(group.title)
    scores = [points[domain][0] for domain in points if unseen[domain]]
    errors = [1 - points[domain][1] for domain in points if unseen[domain]]
    if len(scores) > 2 and len(set(scores)) > 1 and len(set(errors)) > 1:
        title += f"\nrank correlation {spearmanr(scores, errors).statistic:.2f}"
    axes.set_title(title)
    axes.margins(0.12, 0.15)
    axes.yaxis.set_major_formatter(percent)


def _name_points(axes: Axes, points: Points, to_points: float) -> None:
    """Write each name beside its point; of many points, that of the best and of the three worst."""
    if len(points) > MOST_NAMED:
        by_accuracy = sorted(points, key=lambda domain: points[domain][1])
        points = {domain: points[domain] for domain in (*by_accuracy[:3], by_accuracy[-1])}
    frame = axes.get_window_extent()
    places = [axes.transData.transform(point) - (frame.x0, frame.y0) for point in points.values()]
    downwards = [(x * to_points, (frame.height - y) * to_points) for x, y in places]
    names = [shortened(domain) for domain in points]
    edges = (0.0, frame.width * to_points, frame.height * to_points)
    labels = place_labels(downwards, names, edges, NAME_HEIGHT)
    for name, point, (x, y), label in zip(names, points.values(), downwards, labels, strict=True):
        moved = abs(label.y - y) > NAME_HEIGHT / 2
        axes.annotate(
            name,
            point,
            xytext=(label.x - x, y - label.y),
            textcoords="offset points",
            ha="right" if label.to_the_left else "left",
            va="center",
            fontsize=NAME_HEIGHT / 1.2,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5} if moved else None,
        )


def _points(group: Contender, comparison: Comparison) -> Points:
    """Means over the runs."""
    found = {}
    for column in comparison.columns:
        x, y = (group.mean(column.name, name) for name in ("domain_score", comparison.metric.name))
        if x is not None and y is not None:
            found[column.name] = (x, y)
    return found
