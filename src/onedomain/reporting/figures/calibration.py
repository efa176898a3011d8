"""Does a model know what it does not know? Reliability diagrams and risk–coverage curves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from onedomain.data.arrays import FloatArray
from onedomain.data.domain import IntArray
from onedomain.evaluation.measures import CALIBRATION_BINS, risk_over_coverage
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.contenders import adapted_to, contenders_of
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.figures.style import legend_above, look, panels, wrapped
from onedomain.runs.records import RunRecords

FEWEST_IN_A_BIN = 10  # images: the accuracy of fewer says little
MOST_POINTS = 150  # of a curve
MOST_LINES = 5  # of a panel
MOST_PANELS = 8  # of domains; with more of them the unseen ones are pooled

Of = Callable[[Outcome], FloatArray]
Draw = Callable[..., None]


def reliability_bins(confidence: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Mean confidence, accuracy and number of images in each of 15 bins of confidence, (low, high] as in the ECE.

    Bins with fewer than 10 images are left out.

    >>> confidence, accuracy, count = reliability_bins(np.full(20, 0.8), np.array([1.0] * 15 + [0.0] * 5))
    >>> confidence.round(2).tolist(), accuracy.tolist(), count.tolist()
    ([0.8], [0.75], [20])
    """
    places = np.clip(np.ceil(confidence * CALIBRATION_BINS).astype(np.int64) - 1, 0, CALIBRATION_BINS - 1)
    counts = np.bincount(places, minlength=CALIBRATION_BINS)
    kept = counts >= FEWEST_IN_A_BIN
    means = [np.bincount(places, each, CALIBRATION_BINS)[kept] / counts[kept] for each in (confidence, right)]
    return means[0], means[1], counts[kept].astype(np.int64)


@figure(
    "reliability",
    "Reliability",
    "When the model says it is 80% sure, is it right 80% of the time? On the dotted line it is; below the line it "
    "is too sure of itself.",
    place=6,
)
def reliability(runs: Sequence[RunRecords], benchmark: str) -> Figure:

    def draw(axes: Axes, confidence: FloatArray, right: FloatArray, **style: Any) -> None:
        x, y, _ = reliability_bins(confidence, right)
        axes.plot(x, y, **style)

    x, y = "confidence: how sure the model says it is", "accuracy: how often it is right"
    figure, shown = _draw_all(runs, benchmark, attrgetter("confidence"), draw, x, y)
    for axes in shown:
        axes.plot([0, 1], [0, 1], color="#555555", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        axes.set(xlim=(0, 1.05), ylim=(0, 1.06))
        axes.set_xticks([0, 0.5, 1])
        axes.set_yticks([0, 0.5, 1])
    return figure


@figure(
    "risk-coverage",
    "Risk and coverage",
    "If only the most certain answers are kept, how many of them are wrong? A low curve that rises late means that "
    "the uncertainty finds the errors.",
    place=7,
)
def risk_coverage(runs: Sequence[RunRecords], benchmark: str) -> Figure:

    def draw(axes: Axes, uncertainty: FloatArray, right: FloatArray, **style: Any) -> None:
        risk = risk_over_coverage(1 - right, uncertainty)
        numbers = np.unique(np.linspace(1, len(risk), min(len(risk), MOST_POINTS)).round().astype(np.int64))
        axes.plot(numbers / len(risk), risk[numbers - 1], markevery=[-1], **style)

    x = "coverage: share of images answered, the most certain first"
    y = "risk: errors among these (scales differ)"
    figure, shown = _draw_all(runs, benchmark, attrgetter("uncertainty"), draw, x, y)
    for axes in shown:
        axes.set_xlim(0, 1.03)
        axes.set_ylim(bottom=0)
        axes.set_xticks([0, 0.5, 1])
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    return figure


def _draw_all(
    runs: Sequence[RunRecords], benchmark: str, of: Of, draw: Draw, x: str, y: str
) -> tuple[Figure, list[Axes]]:
    """A panel for each domain with a line for each group of runs; with many groups, a panel for each of these."""
    groups = contenders_of(runs, benchmark)
    by_domain = len(groups) <= MOST_LINES
    domains = _panels(runs, benchmark, MOST_PANELS if by_domain else 0)
    titles, names = list(domains), [group.title for group in groups]
    if not by_domain:
        titles, names = names, titles
    figure, shown = panels(len(titles), 1.75, legend=names, x=x, y=y, percents="xy")
    for (panel, those), group in itertools.product(domains.items(), groups):
        title, name = (panel, group.title) if by_domain else (group.title, panel)
        axes = shown[titles.index(title)]
        axes.set_title(wrapped(title))
        answered = [run.outcomes(benchmark) for run in group.runs]
        outcomes = [of_run[domain] for of_run in answered for domain in those if domain in of_run]
        if outcomes:
            values, right = (np.concatenate(list(map(each, outcomes))) for each in (of, attrgetter("right")))
            known = np.isfinite(values) & np.isfinite(right)  # images of void pixels alone have neither
            if known.any():
                draw(axes, values[known], right[known], label=name, markersize=4, **look(names.index(name)))
    legend_above(figure, names)
    return figure, shown


def _panels(runs: Sequence[RunRecords], benchmark: str, most: int) -> dict[str, list[str]]:
    """Each domain that was answered, the source first; if they are more than `most`, all unseen ones as one."""
    unseen: dict[str, bool] = {}
    for run in runs:
        for domain, outcome in run.outcomes(benchmark).items():
            unseen[domain] = unseen.get(domain, False) or outcome.unseen
    if not unseen:
        raise Missing(f"no answers were kept; score the runs again: {runs[0].evaluate_command(benchmark)}")
    met = set().union(*(adapted_to(run) for run in runs))
    source = [domain for domain in unseen if not unseen[domain] and domain not in met]
    others = [domain for domain in unseen if domain not in source]
    if len(unseen) <= most:
        return {f"{each} (source)": [each] for each in source} | {each: [each] for each in others}
    whole = {"source": source, f"{len(others)} unseen domains": others}
    return {title: domains for title, domains in whole.items() if domains}
