"""What SDG's three numbers do: accuracy (or mIoU) over K, α and β, from runs that differ in one of them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import Contender
from onedomain.reporting.figures.declare import figure
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import mean_line, panels, percent
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
    figure, shown = panels(len(families), height=2.1, columns=2 if len(families) > 1 else 1, sharey=True)
    for place, (name, family) in enumerate(families.items()):
        axes = shown[place]
        settings = [group.settings[name] for group in family]
        mean_line(axes, range(len(family)), [comparison.averages(group) for group in family], place)
        axes.set_xticks(range(len(family)), [f"{setting:g}" for setting in settings])
        if USUAL[name] in settings:
            axes.axvline(settings.index(USUAL[name]), color="#999999", linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
        axes.set_xlabel(VARIED[name])
        axes.margins(x=0.12)
        axes.yaxis.set_major_formatter(percent)
    figure.supylabel(f"{comparison.metric.title}, average unseen", fontsize=9)
    return figure


def _family(groups: Sequence[Contender], name: str) -> list[Contender]:
    """The most groups that differ in this one setting alone, by its value."""
    families: dict[str, dict[float, Contender]] = {}
    for group in groups:
        key = group.runs[0].identity.setting_without(lambda fact: fact == name)
        families.setdefault(key, {})[group.settings[name]] = group
    largest = max(families.values(), key=len, default={})
    return [largest[value] for value in sorted(largest)]
