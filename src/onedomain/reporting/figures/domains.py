"""Where a model holds up, and whether it knows: accuracy (or mIoU) per domain, and against the domain score."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Bbox
from scipy.stats import spearmanr

from onedomain.data.corruptions import CATEGORIES
from onedomain.evaluation.corruption_error import from_records
from onedomain.reporting.comparison import Comparison, compare
from onedomain.reporting.contenders import Contender, contenders_of
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import (
    LONGEST_NAME,
    SOURCE,
    UNSEEN,
    legend_above,
    legend_height,
    look,
    panels,
    percent,
    shortened,
    styled,
    wrapped,
)
from onedomain.runs.records import RunRecords

AVERAGE = "average unseen"
MOST_NAMED = 10  # domains of a panel; of more of them, the outermost are named
NAME_SIZE = 8.0  # points

Points = dict[str, tuple[float, float]]  # domain score and accuracy or mIoU, by domain


@styled
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
        x, y, below, above = [], [], [], []
        for row, domain in enumerate(rows):
            if not found.get(domain):
                continue
            mean = fmean(found[domain])
            low, high = _whiskers(group, domain, metric.name, found[domain])
            x.append(mean)
            y.append(row + offset)
            # An interval of a single image is its value, but for the last digit.
            below.append(max(0.0, mean - low))
            above.append(max(0.0, high - mean))
        style = look(place) | {"linestyle": "none"}
        axes.errorbar(x, y, xerr=[below, above], label=group.title, elinewidth=1.0, capsize=2, **style)
    home = [column.name for column in comparison.sources]
    names = [wrapped(f"{row} (source)" if row in home else row, LONGEST_NAME, lines=2) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.xaxis.set_major_formatter(percent)
    axes.axhline(len(rows) - 1.5, color="#555555", linewidth=0.8)
    axes.grid(False, axis="y")
    axes.set_xlabel(metric.title)
    legend_above(figure, *axes.get_legend_handles_labels())
    return figure


@styled
def accuracy_and_uncertainty(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """Each domain by the mean of its domain score and its accuracy, a panel for each method."""
    comparison = compare(runs, benchmark)
    metric = comparison.metric
    groups = [group for group in contenders_of(runs, benchmark) if _points(group, metric.name)]
    if not groups:
        raise Missing("no run has a domain score: they were trained without a calibration")
    figure, shown = panels(len(groups), height=2.3, columns=1 if len(groups) == 1 else 2, extra=0.3, sharey=True)
    for group, axes in zip(groups, shown, strict=True):
        _scatter(axes, group, comparison)
    figure.supxlabel("domain score: how unlike the source the images look to the model", fontsize=9)
    figure.supylabel(metric.title, fontsize=9)
    figure.draw_without_rendering()  # names are placed when it is known where their points are
    for group, axes in zip(groups, shown, strict=True):
        _name_points(axes, _worth_a_name(_points(group, metric.name)), 72.0 / figure.dpi)
    return figure


def _scatter(axes: Axes, group: Contender, comparison: Comparison) -> None:
    points = _points(group, comparison.metric.name)
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


def _worth_a_name(points: Points) -> Points:
    """All, or of many the best and the three worst."""
    if len(points) <= MOST_NAMED:
        return points
    by_accuracy = sorted(points, key=lambda domain: points[domain][1])
    return {domain: points[domain] for domain in (*by_accuracy[:3], by_accuracy[-1])}


def _name_points(axes: Axes, points: Points, to_points: float) -> None:
    """Write each name beside its point, on the side where it covers least."""
    places = {domain: axes.transData.transform(point) * to_points for domain, point in points.items()}
    frame = axes.get_window_extent().transformed(Affine2D().scale(to_points))
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in places.values()]
    for domain, (x, y) in places.items():
        name = shortened(domain)
        width, height = 0.62 * NAME_SIZE * len(name), 1.2 * NAME_SIZE
        moves = {
            (6.0, -height / 2): "left",
            (-6.0 - width, -height / 2): "right",
            (-width / 2, 5.0): "center",
            (-width / 2, -5.0 - height): "center",
            (4.0, 4.0): "left",
            (-4.0 - width, 4.0): "right",
            (4.0, -4.0 - height): "left",
            (-4.0 - width, -4.0 - height): "right",
        }

        def covered(
            move: tuple[float, float], x: float = x, y: float = y, w: float = width, h: float = height
        ) -> float:
            box = Bbox.from_bounds(x + move[0], y + move[1], w, h)
            inside = Bbox.intersection(box, frame)
            out = w * h - (inside.width * inside.height if inside else 0.0)
            met = [Bbox.intersection(box, other) for other in taken]
            return out + sum(each.width * each.height for each in met if each)

        best = min(moves, key=covered)
        taken.append(Bbox.from_bounds(x + best[0], y + best[1], width, height))
        axes.annotate(
            name,
            points[domain],
            xytext=(best[0] + {"left": 0.0, "center": width / 2, "right": width}[moves[best]], best[1] + height / 2),
            textcoords="offset points",
            ha=moves[best],
            va="center",
            fontsize=NAME_SIZE,
        )


def _points(group: Contender, metric: str) -> Points:
    """Means over the runs."""
    found = {}
    for domain in dict.fromkeys(domain for rows in group.rows for domain in rows):
        both = [rows for rows in group.rows if {"domain_score", metric} <= rows.get(domain, {}).keys()]
        if both:
            x, y = (fmean(rows[domain][name]["value"] for rows in both) for name in ("domain_score", metric))
            found[domain] = (x, y)
    return found


def _whiskers(group: Contender, domain: str, metric: str, values: Sequence[float]) -> tuple[float, float]:
    if len(values) > 1:
        mean, spread = fmean(values), stdev(values)
        return mean - spread, mean + spread
    records = [rows.get(domain, {}).get(metric) for rows in group.rows]
    known = [(record["low"], record["high"]) for record in records if record and "low" in record]
    return known[0] if known else (values[0], values[0])
