"""Accuracy (or mIoU) over a number: SDG's three settings, shots of an adaptation, the severity of corruptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.evaluation.corruption_error import from_records
from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import Contender, contenders_of
from onedomain.reporting.figures import style
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.names import adapting_title, telling
from onedomain.reporting.shown_metric import shown_metric
from onedomain.runs.records import RunRecords

VARIED = {"domains": "K, domains made", "alpha": "α, weight of L_const", "beta": "β, weight of L_relax"}
USUAL = {"domains": 3, "alpha": 1.0, "beta": 2000.0}  # the paper's, and SDG's defaults


@figure(
    "settings",
    "Accuracy over K, α and β",
    "How the average on unseen domains changes with the number of made domains and the two weights of SDG. The "
    "dotted line marks the default.",
    place=10,
)
def settings_curves(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """The average over unseen domains, with one deviation over seeds; the values stand side by side, not to scale."""
    comparison = compare([run for run in runs if run.manifest.method == "sdg"], benchmark)
    groups = [each for each in comparison.contenders if not each.adapted_to and comparison.averages(each)]
    families = {name: _family(groups, name) for name in VARIED}
    families = {name: family for name, family in families.items() if len(family) > 1}
    if not families:
        raise Missing("needs runs of sdg that differ in domains, alpha or beta alone")
    shown_as = f"{comparison.metric.title}, average unseen"
    figure, shown = style.panels(len(families), 2.1, y=shown_as, percents="y", sharey=True)
    for place, (name, family) in enumerate(families.items()):
        axes = shown[place]
        settings = [group.manifest.settings[name] for group in family]
        style.mean_line(axes, range(len(family)), [comparison.averages(group) for group in family], place)
        axes.set_xticks(range(len(family)), [f"{setting:g}" for setting in settings])
        if USUAL[name] in settings:
            axes.axvline(settings.index(USUAL[name]), color="#999999", linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
        axes.set_xlabel(VARIED[name])
        axes.margins(x=0.12)
    return figure


def _family(groups: Sequence[Contender], name: str) -> list[Contender]:
    """The most groups that differ in this one setting alone, by its value."""
    families: dict[str, dict[float, Contender]] = {}
    for group in groups:
        key = group.runs[0].identity.setting_without(lambda fact: fact == name)
        families.setdefault(key, {})[group.manifest.settings[name]] = group
    largest = max(families.values(), key=len, default={})
    return [largest[value] for value in sorted(largest)]


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


@figure(
    "shots",
    "Accuracy against shots",
    "What a few labelled images of a new domain give there, and what is forgotten of the source. At 0 stands the "
    "run as it was trained; whiskers show one deviation over draws of these images.",
    place=5,
)
def accuracy_over_shots(runs: Sequence[RunRecords], benchmark: str) -> Figure:
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
    each_class = "" if any(run.manifest.source.dense for run in runs) else " a class"
    x, y = f"labelled images{each_class} that were learned", f"{metric.title} (scales differ)"
    figure, axes = style.panels(len(shown), 2.2, legend=names, x=x, y=y, percents="y")
    for (target, domain), each in zip(shown, axes, strict=True):
        _draw(each, [line for line in lines if line.target == target], domain, names)
        what = "adapted to" if domain == target else f"the source, after {target}" if len(shown) > 2 else "the source"
        each.set_title(style.wrapped(f"{domain} ({what})"))
    style.legend_above(figure)
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
        style.mean_line(axes, x, [list(of.values()) for _, of in points], place, line.title)
    axes.set_xticks(ticks)
    axes.margins(0.1, 0.15)


def _lines(runs: Sequence[RunRecords], benchmark: str, metric: str) -> list[Line]:
    found: dict[str, Line] = {}
    for run in runs:
        info = run.manifest.adaptation
        if info is None:
            continue
        line = Line(adapting_title(run), info.target, run.manifest.source.name, run)
        line = found.setdefault(run.identity.setting_without(_of_the_number), line)
        which = run.identity.repetition
        scored = [(info.shots, which, run.scores(benchmark))]
        if not info.from_scratch:  # its parent is not what it began with
            scored.append((0, which[:-1], run.scores_before(benchmark)))
        for shots, repetition, scores in scored:
            for domain in (line.target, line.source):
                if metric in scores.get(domain, {}):
                    of = line.domains.setdefault(domain, {}).setdefault(shots, {})
                    of[repetition] = scores[domain][metric]["value"]
    lines = [line for line in found.values() if line.domains]
    names = [(line.title, line.target) for line in lines]
    for line, name in zip(lines, names, strict=True):
        rivals = [other.first for other, its in zip(lines, names, strict=True) if its == name]
        line.title = ", ".join([line.title, *telling(line.first, rivals, _of_the_number)])
    return lines


def _of_the_number(fact: str) -> bool:
    """Whether a fact changes along a line: a rule may find the steps by the number of images."""
    return fact in ("adaptation.shots", "adaptation.steps")


PAPERS = {  # panels of the paper's figure of the meta-learning scheme
    "Gaussian noise": ("gaussian-noise",),
    "speckle noise": ("speckle-noise",),
    "impulse noise": ("impulse-noise",),
    "shot noise": ("shot-noise",),
}
MOST_LINES = len(style.MARKERS)  # that look different without colour


@figure(
    "severity",
    "Accuracy over the severity of corruptions",
    "How each method's accuracy falls as the images are corrupted more, over all corruptions and for the four "
    "kinds of noise that the paper shows. Whiskers are one deviation over seeds.",
    place=11,
)
def over_severity(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    known = BENCHMARKS.get(benchmark)
    if known is None or not known.corruptions:
        raise Missing("the domains are no corruptions in five severities")
    every = contenders_of(runs, benchmark)
    groups = style.named_first(every, MOST_LINES)
    found = {group.title: [from_records(run.results, benchmark) for run in group.runs] for group in groups}
    scored = [each for of_group in found.values() for each in of_group]
    # Means of different corruptions do not compare.
    whole = tuple(kind for kind in KINDS if all(each.of_kind(kind) is not None for each in scored))
    if not whole:
        raise Missing("no corruption was scored in all five severities by every run")
    title = "all corruptions" if len(whole) == len(KINDS) else f"{len(whole)} of {len(KINDS)} corruptions"
    shown = {title: whole, **{title: kinds for title, kinds in PAPERS.items() if set(kinds) <= set(whole)}}
    names, same = list(found), {"sharex": True, "sharey": True}
    figure, axes = style.panels(
        len(shown), 1.9, extra=0.4, legend=names, x="severity", y="accuracy", percents="y", **same
    )
    for each, (title, kinds) in zip(axes, shown.items(), strict=True):
        for place, of_group in enumerate(found.values()):
            values = [
                [value for run in of_group if (value := run.of_kinds(kinds, severity)) is not None]
                for severity in SEVERITIES
            ]
            style.mean_line(each, SEVERITIES, values, place, names[place])
        each.set_title(title)
        each.set_xticks(SEVERITIES)
        each.tick_params(labelbottom=True)  # the panel below may be an empty place
    left_out = [group.title for group in every if group not in groups]
    if left_out:
        style.remark_below(figure, f"not drawn, for {MOST_LINES} lines are the most: {', '.join(left_out)}")
    style.legend_above(figure)
    return figure
