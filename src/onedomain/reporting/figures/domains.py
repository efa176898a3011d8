"""Where a model holds up, and whether it knows: accuracy (or mIoU) per domain, and against flags and domain score."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from onedomain.reporting.comparison import Comparison, Domains, compare
from onedomain.reporting.contenders import Contender, contenders_of
from onedomain.reporting.figures import style
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.shown_metric import ACCURACY
from onedomain.reporting.table import LONGEST_NAME, shortened
from onedomain.runs.records import RunRecords

AVERAGE = "average unseen"
MOST_PANELS = 6
MOST_NAMED = 10  # domains of a panel; of more of them, the outermost are named
# In points, of names with letters of 8:
LINE, LETTER, GAP = 9.6, 5.07, 5.4  # height, width of a letter, distance from the point
NO_CALIBRATION = "no run has a domain score: they were trained without a calibration"

Points = dict[str, tuple[float, float]]  # the other metric and accuracy or mIoU, by domain


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
    groups = contenders_of(runs, benchmark)
    columns = sorted(comparison.columns, key=lambda column: column.unseen)
    shown = [column for column in columns if not (comparison.corrupted and column.unseen)]
    rows: dict[str, Domains] = {column.name: column.name for column in shown}
    rows |= comparison.categories | {AVERAGE: tuple(comparison.compared)}
    height = max(0.3, 0.13 * len(groups) + 0.12)
    names = [group.title for group in groups]
    figure, (axes,) = style.panels(1, height * len(rows), extra=0.5, legend=names, percents="x")
    for place, group in enumerate(groups):
        offset = (place - (len(groups) - 1) / 2) * min(0.2, 0.8 / len(groups))
        x, y, whiskers = [], [], []
        for row, (name, domains) in enumerate(rows.items()):
            estimate = comparison.estimate(group, domains)
            if estimate is None or (name == AVERAGE and group.adapted_to):
                continue
            mean, spread = estimate.mean, estimate.deviation or 0.0
            low, high = estimate.recorded or (mean - spread, mean + spread)
            x.append(mean)
            y.append(row + offset)
            # An interval of a single image is its value, but for the last digit.
            whiskers.append((max(0.0, mean - low), max(0.0, high - mean)))
        marks = style.look(place) | {"linestyle": "none"}
        axes.errorbar(
            x, y, xerr=list(zip(*whiskers, strict=True)), label=group.title, elinewidth=1.0, capsize=2, **marks
        )
    home = [column.name for column in comparison.sources]
    names = [style.wrapped(f"{row} (source)" if row in home else row, LONGEST_NAME, lines=2) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.axhline(len(rows) - 1.5, color="#555555", linewidth=0.8)
    axes.grid(False, axis="y")
    axes.set_xlabel(comparison.metric.title)
    style.legend_above(figure)
    return figure


@figure(
    "flagged",
    "Does it know when it fails?",
    "How much of each domain a method gets right, and how many of its images it flags as out of domain. In the shaded "
    "half more are wrong than flagged.",
    place=2,
    with_miou="How well a method does on each domain, and how many of its images it flags as out of domain. Where less "
    "is found, more should be flagged.",
)
def accuracy_and_flags(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    comparison = compare(runs, benchmark)
    figure, shown = _panels(comparison, "flagged", "flagged as out of domain", 1.75, "xy")
    for axes, _ in shown:
        if comparison.metric is ACCURACY:
            axes.fill([0, 0, 1], [1, 0, 0], color="#FBF0E8", zorder=0)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.05))
    return _named(figure, shown)


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
    comparison = compare(runs, benchmark)
    label = "domain score: how unlike the source the images look to the model"
    figure, shown = _panels(comparison, "domain_score", label, 2.3, "y")
    for axes, points in shown:
        unseen = [points[column.name] for column in comparison.unseen if column.name in points]
        if len(unseen) > 2 and all(len(set(values)) > 1 for values in zip(*unseen, strict=True)):
            lost = spearmanr([score for score, _ in unseen], [1 - right for _, right in unseen]).statistic
            axes.set_title(f"{axes.get_title()}\nrank correlation {lost:.2f}")
        axes.margins(0.12, 0.15)
    return _named(figure, shown)


def _panels(
    comparison: Comparison, metric: str, label: str, height: float, percents: str
) -> tuple[Figure, list[tuple[Axes, Points]]]:
    """The best methods, and those that others are compared with; means over the runs of each."""
    every = [(each, points) for each in comparison.contenders if (points := _points(each, comparison, metric))]
    if not every:
        raise Missing(NO_CALIBRATION)
    methods = style.named_first([group for group, _ in every], MOST_PANELS)
    drawn = [(group, points) for group, points in every if group in methods]
    figure, shown = style.panels(len(drawn), height, x=label, y=comparison.metric.title, percents=percents, sharey=True)
    for (group, points), axes in zip(drawn, shown, strict=True):
        new = {each.name for each in comparison.columns if each.unseen and each.name not in group.adapted_to}
        for wanted, colour, marker in ((False, style.SOURCE, "o"), (True, style.UNSEEN, "s")):
            chosen = [point for domain, point in points.items() if (domain in new) is wanted]
            if chosen:
                x, y = zip(*chosen, strict=True)
                axes.plot(x, y, marker, color=colour, markeredgecolor="black", markeredgewidth=0.6, clip_on=False)
        axes.set_title(style.wrapped(group.title))
    left_out = [group.title for group, _ in every if group not in methods]
    if left_out:
        style.remark_below(figure, f"not drawn, for {MOST_PANELS} panels are the most: {', '.join(left_out)}")
    return figure, [(axes, points) for axes, (_, points) in zip(shown, drawn, strict=True)]


def _points(group: Contender, comparison: Comparison, metric: str) -> Points:
    found = {}
    for column in comparison.columns:
        x, y = (group.mean(column.name, name) for name in (metric, comparison.metric.name))
        if x is not None and y is not None:
            found[column.name] = (x, y)
    return found


def _named(figure: Figure, shown: Sequence[tuple[Axes, Points]]) -> Figure:
    """Write each name beside its point; of many points, that of the best and of the three worst."""
    figure.draw_without_rendering()  # names are placed when it is known where their points are
    for axes, points in shown:
        names = list(points)
        if len(points) > MOST_NAMED:
            by_accuracy = sorted(points, key=lambda domain: points[domain][1])
            names = [*by_accuracy[:3], by_accuracy[-1]]
        to_points = 72.0 / figure.dpi
        frame = axes.get_window_extent()
        places = [(axes.transData.transform(points[name]) - (frame.x0, frame.y0)) * to_points for name in names]
        labels = [shortened(name) for name in names]
        moves = place_labels(places, labels, frame.width * to_points, frame.height * to_points)
        for name, label, (x, y) in zip(names, labels, moves, strict=True):
            axes.annotate(
                label,
                points[name],
                xytext=(x, y),
                textcoords="offset points",
                ha="right" if x < 0 else "left",
                va="center",
                fontsize=LINE / 1.2,
                arrowprops={"arrowstyle": "-", "linewidth": 0.5} if abs(y) > LINE / 2 else None,
            )
    return figure


def place_labels(
    points: Sequence[tuple[float, float]], texts: Sequence[str], width: float, height: float
) -> list[tuple[float, float]]:
    """Where each text begins, or ends if x is negative, as seen from its point: at the nearest height that is free.

    It stands on the right of its point if there is room.
    """
    taken = [(x - GAP / 2, x + GAP / 2, y, LINE / 2 + GAP / 2) for x, y in points]
    moves: dict[int, tuple[float, float]] = {}
    # From the bottom up, so that a crowd above the axis keeps the order of its points.
    for place in sorted(range(len(points)), key=lambda place: (points[place][1], -place)):
        (x, y), long = points[place], LETTER * len(texts[place])
        fits = x + GAP + long <= width
        left, right = (x + GAP, x + GAP + long) if fits else (x - GAP - long, x - GAP)
        free = [
            move
            for move in range(-int(height), int(height))
            if GAP / 2 <= y + move <= height
            and not any(left < end and start < right and abs(y + move - at) < apart for start, end, at, apart in taken)
        ]
        move = min(free, key=abs, default=0)
        taken.append((left, right, y + move, LINE))
        moves[place] = (GAP if fits else -GAP, move)
    return [moves[place] for place in range(len(points))]
