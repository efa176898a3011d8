"""How accuracy falls as corruptions grow severe, method by method: SDG with and without meta-learning, if both ran."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.evaluation.corruption_error import from_records
from onedomain.reporting.contenders import Contender, contenders_of
from onedomain.reporting.figures.declare import figure
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import (
    MARKERS,
    legend_above,
    legend_height,
    mean_line,
    panels,
    percent,
    wrapped,
)
from onedomain.runs.records import RunRecords

PAPERS = {  # panels of the paper's figure of the meta-learning scheme
    "Gaussian noise": ("gaussian-noise",),
    "speckle noise": ("speckle-noise",),
    "impulse noise": ("impulse-noise",),
    "shot noise": ("shot-noise",),
}
MOST_LINES = len(MARKERS)  # that look different without colour
FIRST = ("sdg", "erm")  # methods that are drawn in any case: what the figure is about, and what all is compared with


@figure(
    "severity",
    "Accuracy over the severity of corruptions",
    "How each method's accuracy falls as the images are corrupted more, over all corruptions and for the four "
    "kinds of noise that the paper shows. Whiskers are one deviation over seeds.",
    place=11,
)
def over_severity(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A panel for all corruptions and one for each that the paper shows; whiskers are one deviation over seeds."""
    known = BENCHMARKS.get(benchmark)
    if known is None or not known.corruptions:
        raise Missing("the domains are no corruptions in five severities")
    every = contenders_of(runs, benchmark)
    groups = chosen(every)
    found = {group.title: [from_records(run.results, benchmark) for run in group.runs] for group in groups}
    scored = [each for of_group in found.values() for each in of_group]
    # Means of different corruptions do not compare.
    whole = tuple(kind for kind in KINDS if all(each.of_kind(kind) is not None for each in scored))
    if not whole:
        raise Missing("no corruption was scored in all five severities by every run")
    title = "all corruptions" if len(whole) == len(KINDS) else f"{len(whole)} of {len(KINDS)} corruptions"
    shown = {title: whole, **{title: kinds for title, kinds in PAPERS.items() if set(kinds) <= set(whole)}}
    figure, axes = panels(len(shown), height=1.9, extra=0.4 + legend_height(list(found)), sharex=True, sharey=True)
    for each, (title, kinds) in zip(axes, shown.items(), strict=True):
        for place, of_group in enumerate(found.values()):
            values = [
                [value for run in of_group if (value := run.of_kinds(kinds, severity)) is not None]
                for severity in SEVERITIES
            ]
            mean_line(each, SEVERITIES, values, place, list(found)[place])
        each.set_title(title)
        each.set_xticks(SEVERITIES)
        each.tick_params(labelbottom=True)  # the panel below may be an empty place
        each.yaxis.set_major_formatter(percent)
    left_out = [group.title for group in every if group not in groups]
    remark = wrapped(f"not drawn, for {MOST_LINES} lines are the most: {', '.join(left_out)}", 70)
    figure.supxlabel(f"severity\n{remark}" if left_out else "severity", fontsize=9)
    figure.supylabel("accuracy", fontsize=9)
    legend_above(figure)
    return figure


def chosen(groups: Sequence[Contender]) -> list[Contender]:
    """As many as can be told apart, in the order given."""
    by_need = sorted(groups, key=lambda group: FIRST.index(group.method) if group.method in FIRST else len(FIRST))
    return [group for group in groups if group in by_need[:MOST_LINES]]
