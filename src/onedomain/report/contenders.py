"""What is compared: a method with its settings, in as many runs as there are seeds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.records import RunRecords
from onedomain.report.estimates import Estimate, variance_of_images
from onedomain.reproduce.paper import setting_text
from onedomain.reproduce.tables import SCALES, TABLES

BASELINE = "erm"  # plain training, which every other method is to beat
BOOKKEEPING = ("checkpoint_every", "log_every")  # settings that change no result
# Settings that `reproduce` makes smaller for a quick look: the method is the same one, its protocol a reduced one.
SIZES = ("steps", *sorted({name for scale in SCALES.values() for each in scale.settings.values() for name in each}))


@dataclass(frozen=True)
class Contender:
    """A method with its settings, in as many runs as there are seeds."""

    title: str
    method: str
    changed: Mapping[str, Any]  # settings that differ from the benchmark's, without what only reduces the protocol
    reduced: Mapping[str, tuple[float, float]]  # what is smaller than the protocol has it, and how large it has it
    runs: tuple[RunRecords, ...] = field(repr=False)
    rows: tuple[Mapping[str, Mapping[str, Mapping[str, Any]]], ...] = field(repr=False)  # of each run: domain, metric

    @property
    def seeds(self) -> list[int]:
        return [run.manifest.seed for run in self.runs]

    @property
    def steps(self) -> int:
        return int(self.runs[0].manifest.settings["steps"])

    def accuracy(self, domain: str) -> Estimate | None:
        """None if no run was scored on the domain."""
        found = [rows[domain]["accuracy"] for rows in self.rows if domain in rows]
        if not found:
            return None
        of_images = fmean(variance_of_images(row["low"], row["high"]) for row in found)
        return Estimate(tuple(row["value"] for row in found), of_images)

    def interval(self, domain: str) -> tuple[float, float] | None:
        """Of the accuracy, over images, as it was recorded; None for several runs."""
        found = [rows[domain]["accuracy"] for rows in self.rows if domain in rows]
        return (found[0]["low"], found[0]["high"]) if len(found) == 1 else None

    def mean(self, domain: str, metric: str) -> float | None:
        """Over the runs that have it."""
        values = [rows[domain][metric]["value"] for rows in self.rows if metric in rows.get(domain, {})]
        return fmean(values) if values else None


def is_baseline(contender: Contender) -> bool:
    return contender.method == BASELINE and not contender.changed


def contenders_of(runs: Sequence[RunRecords], benchmark: str) -> list[Contender]:
    """Runs that differ in nothing but the seed are one contender."""
    groups: dict[str, list[RunRecords]] = {}
    for run in runs:
        group = groups.setdefault(json.dumps([run.manifest.method, _facets(run)], sort_keys=True), [])
        for other in group:
            if other.manifest.seed == run.manifest.seed:
                given = f"is the same as {other.folder}: {run.manifest.method}, seed {run.manifest.seed}, same settings"
                raise UserError(str(run.folder), given, "each run once")
        group.append(run)
    found = [sorted(group, key=lambda run: run.manifest.seed) for group in groups.values()]
    return [
        _contender(group, title, benchmark)
        for group, title in zip(found, titles([group[0] for group in found]), strict=True)
    ]


def _contender(runs: Sequence[RunRecords], title: str, benchmark: str) -> Contender:
    first, usual, changed = runs[0], usual_settings(runs[0]), changed_settings(runs[0])
    smaller = [name for name in SIZES if name in changed and name in usual and changed[name] < usual[name]]
    if first.manifest.benchmark not in BENCHMARKS:  # there is no protocol to fall short of
        smaller = []
    reduced = {name: (changed[name], usual[name]) for name in smaller}
    changed = {name: value for name, value in changed.items() if name not in ("steps", *smaller)}
    rows = tuple(run.scores(benchmark) for run in runs)
    return Contender(title, first.manifest.method, changed, reduced, tuple(runs), rows)


def method_title(method: str) -> str:
    """As the paper's table spells it; a method that is not in it is called by its name."""
    return next((row.label for row in TABLES["digits"].rows if row.key == method), method)


def usual_settings(run: RunRecords) -> dict[str, Any]:
    """What the run's benchmark sets its method to; empty for a method that is not the library's."""
    method = run.manifest.method
    if method not in method_names():
        return {}
    kind = method_class(method)
    benchmark = BENCHMARKS.get(run.manifest.benchmark or "")
    return kind(**(benchmark.settings.get(method, {}) if benchmark else {})).settings.model_dump(mode="json")


def changed_settings(run: RunRecords) -> dict[str, Any]:
    """What was set otherwise, as far as it changes a result."""
    usual = usual_settings(run)
    return {
        name: value
        for name, value in run.manifest.settings.items()
        if name not in BOOKKEEPING and (name not in usual or usual[name] != value)
    }


def trained_for(run: RunRecords, benchmark: str) -> bool:
    """Whether the run's source is that of the benchmark; some benchmarks share theirs."""
    own, asked = BENCHMARKS.get(run.manifest.benchmark or ""), BENCHMARKS.get(benchmark)
    return run.manifest.benchmark == benchmark or (own is not None and asked is not None and own.train is asked.train)


def titles(runs: Sequence[RunRecords]) -> list[str]:
    """The method's name, with what tells the run apart if there are several of the method."""
    found = []
    for run in runs:
        facets, usual = _facets(run), usual_settings(run)
        rivals = [_facets(other) for other in runs if other.manifest.method == run.manifest.method]
        differing = [name for name in facets if any(rival.get(name) != facets[name] for rival in rivals)]
        telling = [name for name in differing if name not in usual or usual[name] != facets[name]]
        found.append(", ".join([method_title(run.manifest.method), *(_words(name, run) for name in telling)]))
    often = Counter(found)
    return [
        title if often[title] == 1 else f"{title} ({run.folder.name})" for title, run in zip(found, runs, strict=True)
    ]


def _facets(run: RunRecords) -> dict[str, Any]:
    """All that must be equal for two runs to differ in their seeds alone."""
    manifest = run.manifest
    settings = {name: value for name, value in manifest.settings.items() if name not in BOOKKEEPING}
    return settings | {"network": manifest.network.model_dump(mode="json"), "source": manifest.source.fingerprint}


def _words(facet: str, run: RunRecords) -> str:
    manifest = run.manifest
    if facet == "source":
        return f"trained on {manifest.benchmark or manifest.source.name}"
    if facet == "network":
        return f"network {manifest.network.name or manifest.network.own}"
    return f"{facet}={setting_text(manifest.settings[facet])}"
