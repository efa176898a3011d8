"""Where a model holds up: accuracy (or mIoU) per domain."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from matplotlib.figure import Figure

from onedomain.data.corruptions import CATEGORIES
from onedomain.evaluation.corruption_error import from_records
from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import contenders_of
from onedomain.reporting.figures.declare import figure
from onedomain.reporting.figures.style import legend_above, look, panels, wrapped
from onedomain.reporting.table import LONGEST_NAME
from onedomain.runs.records import RunRecords

AVERAGE = "average unseen"


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
    names = [group.title for group in groups]
    figure, (axes,) = panels(1, height * len(rows), extra=0.5, legend=names, percents="x")
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
    axes.axhline(len(rows) - 1.5, color="#555555", linewidth=0.8)
    axes.grid(False, axis="y")
    axes.set_xlabel(metric.title)
    legend_above(figure)
    return figure
