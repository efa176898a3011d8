"""Where a model holds up, and whether it knows: accuracy (or mIoU) per domain, and against the domain score."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Bbox
from scipy.stats import spearmanr

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import CATEGORIES
from onedomain.evaluation.corruption_error import from_records
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
from onedomain.reporting.grouping import Group, adapted_to, group_runs
from onedomain.reporting.shown_metric import shown_metric
from onedomain.runs.records import RunRecords

AVERAGE = "average unseen"
MOST_NAMED = 10  # domains of a panel; of more of them, the outermost are named
NAME_SIZE = 8.0  # points

Points = dict[str, tuple[float, float]]  # domain score and accuracy or mIoU, by domain


@styled
def accuracy(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A row for each domain, a marker for each method; whiskers are one deviation over seeds, or for a single seed the
    95% interval over images. Corruptions are many: they have a row a category, and with a single seed no whiskers.
    """
    groups = group_runs(runs)
    metric = shown_metric(runs, benchmark)
    unseen = _unseen(runs, benchmark)
    known = BENCHMARKS.get(benchmark)
    categories = CATEGORIES if known is not None and known.corruptions else {}
    rows = [*(domain for domain in unseen if not (categories and unseen[domain])), *categories, AVERAGE]
    height = max(0.3, 0.13 * len(groups) + 0.12)
    figure, (axes,) = panels(1, height=height * len(rows), extra=0.5 + legend_height([g.label for g in groups]))
    for place, group in enumerate(groups):
        averages = group.averages(benchmark, metric.name)
        found = {**group.values(benchmark, metric.name), AVERAGE: averages}
        for category, kinds in categories.items():
            means = [from_records(run.results, benchmark).of_kinds(kinds) for run in group.runs]
            found[category] = [mean for mean in means if mean is not None]
        offset = (place - (len(groups) - 1) / 2) * min(0.2, 0.8 / len(groups))
        x, y, below, above = [], [], [], []
        for row, domain in enumerate(rows):
            if not found.get(domain):
                continue
            mean = fmean(found[domain])
            low, high = _whiskers(group, benchmark, domain, metric.name, found[domain])
            x.append(mean)
            y.append(row + offset)
            # An interval of a single image is its value, but for the last digit.
            below.append(max(0.0, mean - low))
            above.append(max(0.0, high - mean))
        style = look(place) | {"linestyle": "none"}
        axes.errorbar(x, y, xerr=[below, above], label=group.label, elinewidth=1.0, capsize=2, **style)
    met = set().union(*(adapted_to(run) for run in runs))
    home = [row for row in rows if unseen.get(row) is False and row not in met]
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
    metric = shown_metric(runs, benchmark)
    groups = [group for group in group_runs(runs) if _points(group, benchmark, metric.name)]
    if not groups:
        raise Missing("no run has a domain score: they were trained without a calibration")
    figure, shown = panels(len(groups), height=2.3, columns=1 if len(groups) == 1 else 2, extra=0.3, sharey=True)
    for group, axes in zip(groups, shown, strict=True):
        _scatter(axes, group, benchmark, metric.name)
    figure.supxlabel("domain score: how unlike the source the images look to the model", fontsize=9)
    figure.supylabel(metric.title, fontsize=9)
    figure.draw_without_rendering()  # names are placed when it is known where their points are
    for group, axes in zip(groups, shown, strict=True):
        _name_points(axes, _worth_a_name(_points(group, benchmark, metric.name)), 72.0 / figure.dpi)
    return figure


def _scatter(axes: Axes, group: Group, benchmark: str, metric: str) -> None:
    points = _points(group, benchmark, metric)
    unseen = _unseen(group.runs, benchmark)
    for wanted, colour, marker in ((False, SOURCE, "o"), (True, UNSEEN, "s")):
        chosen = [point for domain, point in points.items() if unseen[domain] is wanted]
        if chosen:
            axes.plot(*zip(*chosen, strict=True), marker, color=colour, markeredgecolor="black", markeredgewidth=0.6)
    title = wrapped(group.label)
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


def _unseen(runs: Sequence[RunRecords], benchmark: str) -> dict[str, bool]:
    """Every domain that was scored, and whether it counts as unseen; the source first."""
    found: dict[str, bool] = {}
    for run in runs:
        for domain, metrics in run.scores(benchmark).items():
            row = next(iter(metrics.values()))
            found[domain] = found.get(domain, False) or bool(row["unseen"])
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _points(group: Group, benchmark: str, metric: str) -> Points:
    """Means over the runs."""
    found: dict[str, list[tuple[float, float]]] = {}
    for run in group.runs:
        for domain, metrics in run.scores(benchmark).items():
            if "domain_score" in metrics and metric in metrics:
                pair = (metrics["domain_score"]["value"], metrics[metric]["value"])
                found.setdefault(domain, []).append(pair)
    return {domain: (fmean(s for s, _ in pairs), fmean(a for _, a in pairs)) for domain, pairs in found.items()}


def _whiskers(group: Group, benchmark: str, domain: str, metric: str, values: Sequence[float]) -> tuple[float, float]:
    if len(values) > 1:
        mean, spread = fmean(values), stdev(values)
        return mean - spread, mean + spread
    rows = [run.scores(benchmark).get(domain, {}).get(metric) for run in group.runs]
    known = [(row["low"], row["high"]) for row in rows if row and "low" in row]  # mIoU had none at first
    return known[0] if known else (values[0], values[0])
