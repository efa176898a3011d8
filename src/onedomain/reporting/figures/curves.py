"""What SDG's three numbers do: accuracy (or mIoU) over K, α and β, from runs that differ in one of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import fmean, stdev

from matplotlib.figure import Figure

from onedomain.methods.sdg import SDGSettings
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import look, panels, percent, styled
from onedomain.reporting.grouping import Group, facets, group_runs
from onedomain.reporting.shown_metric import shown_metric
from onedomain.runs.records import RunRecords

VARIED = {"domains": "K, domains made", "alpha": "α, weight of L_const", "beta": "β, weight of L_relax"}


@styled
def settings_curves(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """The average over unseen domains, with one deviation over seeds; the values stand side by side, not to scale."""
    metric = shown_metric(runs, benchmark)
    sdg = [group for group in group_runs(runs) if group.method == "sdg" and group.adaptation is None]
    groups = [group for group in sdg if group.averages(benchmark, metric.name)]
    families = {name: _family(groups, name) for name in VARIED}
    families = {name: family for name, family in families.items() if len(family) > 1}
    if not families:
        raise Missing("needs runs of sdg that differ in domains, alpha or beta alone")
    figure, shown = panels(len(families), height=2.1, columns=2 if len(families) > 1 else 1, sharey=True)
    for place, (name, family) in enumerate(families.items()):
        axes = shown[place]
        values = [group.averages(benchmark, metric.name) for group in family]
        deviations = [stdev(each) if len(each) > 1 else math.nan for each in values]
        settings = [group.settings[name] for group in family]
        axes.errorbar(range(len(family)), [fmean(each) for each in values], yerr=deviations, capsize=3, **look(place))
        axes.set_xticks(range(len(family)), [f"{setting:g}" for setting in settings])
        default = SDGSettings.model_fields[name].default
        if default in settings:
            axes.axvline(settings.index(default), color="#999999", linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
        axes.set_xlabel(VARIED[name])
        axes.margins(x=0.12)
        axes.yaxis.set_major_formatter(percent)
    figure.supylabel(f"{metric.title}, average unseen", fontsize=9)
    return figure


def _family(groups: Sequence[Group], name: str) -> list[Group]:
    """The most groups that differ in this one setting alone, by its value."""
    families: dict[str, dict[float, Group]] = {}
    for group in groups:
        others = {key: value for key, value in facets(group.runs[0]).items() if key != name}
        key = json.dumps(others, sort_keys=True)
        families.setdefault(key, {})[group.settings[name]] = group
    largest = max(families.values(), key=len, default={})
    return [largest[value] for value in sorted(largest)]
