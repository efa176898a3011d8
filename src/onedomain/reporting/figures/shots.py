"""What a few labelled images of a new domain give there, and what they cost at home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onedomain.reporting.figures.declare import figure
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import legend_above, legend_height, mean_line, panels, percent, wrapped
from onedomain.reporting.names import adapting_title, telling
from onedomain.reporting.shown_metric import shown_metric
from onedomain.runs.records import RunRecords

APART = 0.02  # of the axis: between the whiskers of two lines, so that both are seen

Points = dict[int, dict[tuple[int, ...], float]]  # accuracy or mIoU by shots, and by what repeats it


@dataclass
class Line:
    """A method that was adapted to one target with several numbers of shots; 0 is what it was before."""

    title: str
    target: str
    source: str
    first: RunRecords
    domains: dict[str, Points] = field(default_factory=dict)

    def add(self, run: RunRecords, benchmark: str, metric: str) -> None:
        info = run.manifest.adaptation
        if info is None:
            return
        which = run.identity.repetition
        self._add(run.scores(benchmark), metric, info.shots, which)
        if not info.from_scratch:  # its parent is not what it began with
            self._add(run.scores_before(benchmark), metric, 0, which[:-1])

    def _add(
        self, scores: dict[str, dict[str, dict[str, float]]], metric: str, shots: int, which: tuple[int, ...]
    ) -> None:
        for domain in (self.target, self.source):
            if metric in scores.get(domain, {}):
                of = self.domains.setdefault(domain, {}).setdefault(shots, {})
                of[which] = scores[domain][metric]["value"]


@figure(
    "shots",
    "Accuracy against shots",
    "What a few labelled images of a new domain give there, and what is forgotten of the source. At 0 stands the "
    "run as it was trained; whiskers show one deviation over draws of these images.",
    place=5,
)
def accuracy_over_shots(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A panel for each target, and beside it the source; whiskers are one deviation over draws."""
    metric = shown_metric(runs, benchmark)
    lines = _lines(runs, benchmark, metric.name)
    shown = [
        (target, domain)
        for target, source in dict.fromkeys((line.target, line.source) for line in lines)
        for domain in (target, source)
        if any(domain in line.domains for line in lines if line.target == target)
    ]
    if not shown:
        raise Missing("no run was adapted to a domain of this benchmark: that is what onedomain adapt does")
    names = list(dict.fromkeys(line.title for line in lines))
    figure, axes = panels(len(shown), height=2.2, extra=0.3 + legend_height(names))
    for (target, domain), each in zip(shown, axes, strict=True):
        _draw(each, [line for line in lines if line.target == target], domain, names)
        what = "adapted to" if domain == target else f"the source, after {target}" if len(shown) > 2 else "the source"
        each.set_title(wrapped(f"{domain} ({what})"))
    each_class = "" if any(run.manifest.source.dense for run in runs) else " a class"
    figure.supxlabel(f"labelled images{each_class} that were learned", fontsize=9)
    figure.supylabel(f"{metric.title} (scales differ)", fontsize=9)
    legend_above(figure)
    return figure


def _draw(axes: Axes, lines: Sequence[Line], domain: str, names: Sequence[str]) -> None:
    ticks = sorted({shots for line in lines for shots in line.domains.get(domain, {})})
    width = max(ticks, default=0) or 1
    for line in lines:
        points = sorted(line.domains.get(domain, {}).items())
        if not points:
            continue
        place = names.index(line.title)
        x = [shots + (place - (len(names) - 1) / 2) * APART * width for shots, _ in points]
        mean_line(axes, x, [list(of.values()) for _, of in points], place, line.title)
    axes.set_xticks(ticks)
    axes.margins(0.1, 0.15)
    axes.yaxis.set_major_formatter(percent)


def _lines(runs: Sequence[RunRecords], benchmark: str, metric: str) -> list[Line]:
    found: dict[str, Line] = {}
    for run in runs:
        info = run.manifest.adaptation
        if info is None:
            continue
        line = Line(adapting_title(run), info.target, run.manifest.source.name, run)
        found.setdefault(run.identity.setting_without(_of_the_number), line).add(run, benchmark, metric)
    lines = [line for line in found.values() if line.domains]
    of_one_name: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        of_one_name.setdefault((line.title, line.target), []).append(line)
    for rivals in of_one_name.values():
        for line in rivals:
            words = telling(line.first, [rival.first for rival in rivals], _of_the_number)
            line.title = ", ".join([line.title, *words])
    return lines


def _of_the_number(fact: str) -> bool:
    """Whether a fact changes along a line: a rule may find the steps by the number of images."""
    return fact in ("adaptation.shots", "adaptation.steps")
