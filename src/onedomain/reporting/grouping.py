"""What is one thing to compare: runs that differ by seed, or by the draw they were adapted to, and its name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.methods import method_class, method_names
from onedomain.methods.adapt import adaptation_class, adaptation_names
from onedomain.reporting.reproduce.paper import setting_text
from onedomain.reporting.reproduce.tables import TABLES
from onedomain.runs.manifest import AdaptationInfo
from onedomain.runs.records import RunRecords

MOST_NAMED = 3  # settings that a name says; with more of them the folder's name is shorter
LAST, BEFORE_IT = "adaptation.", "before."  # what facets of adaptations begin with: the last, one before it …
BOOKKEEPING = ("checkpoint_every", "log_every")  # settings that change no result
USUAL_ADAPTATION = adaptation_names()[0]  # goes without saying


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but seeds and draws, and the name that tells them from others."""

    label: str
    runs: tuple[RunRecords, ...]

    @property
    def method(self) -> str:
        return self.runs[0].manifest.method

    @property
    def settings(self) -> dict[str, Any]:
        return self.runs[0].manifest.settings

    @property
    def adaptation(self) -> AdaptationInfo | None:
        """How they were adapted, but for the draw; None for runs that were only trained."""
        return self.runs[0].manifest.adaptation

    def values(self, benchmark: str, metric: str) -> dict[str, list[float]]:
        """A metric of every run, by domain, in the order of scoring."""
        found: dict[str, list[float]] = {}
        for run in self.runs:
            for domain, metrics in run.scores(benchmark).items():
                if metric in metrics:
                    found.setdefault(domain, []).append(metrics[metric]["value"])
        return found

    def averages(self, benchmark: str, metric: str) -> list[float]:
        """Its mean over the unseen domains, of every run; none of adapted ones, which have fewer of them."""
        means = []
        for run in self.runs if self.adaptation is None else ():
            rows = [metrics[metric] for metrics in run.scores(benchmark).values() if metric in metrics]
            values = [row["value"] for row in rows if row["unseen"]]
            if values:
                means.append(sum(values) / len(values))
        return means


def group_runs(runs: Sequence[RunRecords]) -> list[Group]:
    """The groups in the order given, the runs of each by seed and draw."""
    together: dict[str, list[RunRecords]] = {}
    for run in runs:
        together.setdefault(json.dumps(facets(run), sort_keys=True), []).append(run)
    groups = [sorted(group, key=repetition) for group in together.values()]
    named = labels([group[0] for group in groups])
    return [Group(label, tuple(group)) for label, group in zip(named, groups, strict=True)]


def facets(run: RunRecords) -> dict[str, Any]:
    """All that must be equal for two runs to differ by their seeds and draws alone."""
    manifest = run.manifest
    found = {"method": manifest.method, **_without_bookkeeping(manifest.settings)}
    found |= {"network": manifest.network.model_dump(mode="json"), "source": manifest.source.fingerprint}
    for prefix, info in _adaptations(run):
        of = {"method": info.method, "target": info.target, "target data": info.fingerprint, "shots": info.shots}
        of |= {"from scratch": info.from_scratch, **_without_bookkeeping(info.settings)}
        found |= {f"{prefix}{name}": value for name, value in of.items()}
    return found


def repetition(run: RunRecords) -> tuple[int, ...]:
    """In what the runs of a group differ: the seed, unless nothing of what it trained is left, and the draws."""
    manifest = run.manifest
    seed = [] if any(info.from_scratch for info in manifest.adaptations) else [manifest.seed]
    return (*seed, *(info.draw for info in reversed(manifest.adaptations)))


def adapted_to(run: RunRecords) -> set[str]:
    """The domains of which it has learned a few images."""
    return {info.target for info in run.manifest.adaptations}


def method_title(method: str) -> str:
    """As the paper's tables spell it; a method that is in none of them is called by its name."""
    rows = [row for table in TABLES.values() for row in table.rows]
    titles = {row.adaptation.method: row.label for row in rows if row.adaptation}
    return {**titles, **{row.key: row.label for row in reversed(rows)}}.get(method, method)


def run_title(run: RunRecords) -> str:
    """The method, and what it was adapted to, in that order: runs of one title differ by settings, seed or draw."""
    manifest = run.manifest
    parts = [_trained_title(run)]
    for info in reversed(manifest.adaptations):
        how = f"{_how(info)} " if _how(info) else ""
        unit = "image" if manifest.source.dense else "shot"
        parts.append(f"{how}{info.shots} {unit}{'' if info.shots == 1 else 's'} of {info.target}")
    return ", ".join(parts)


def adapting_title(run: RunRecords) -> str:
    """Of an adapted run: what was adapted and how, not to what."""
    return ", ".join(filter(None, [_trained_title(run), *map(_how, reversed(run.manifest.adaptations))]))


def _trained_title(run: RunRecords) -> str:
    scratch = any(info.from_scratch for info in run.manifest.adaptations)  # a method of training may have its name
    return f"{method_title(run.manifest.method)}{' from scratch' if scratch else ''}"


def _how(info: AdaptationInfo) -> str:
    return "" if info.from_scratch or info.method == USUAL_ADAPTATION else info.method


def labels(runs: Sequence[RunRecords]) -> list[str]:
    """Of runs of different groups: the title of each, with what tells it apart if there are several of that title."""
    titles = [run_title(run) for run in runs]
    found = []
    for run, title in zip(runs, titles, strict=True):
        rivals = [other for other, its in zip(runs, titles, strict=True) if its == title]
        words = telling(run, rivals)
        many = len(words) > MOST_NAMED
        found.append(f"{title} ({_folder_name(run, runs)})" if many else ", ".join([title, *words]))
    often = Counter(found)
    return [
        label if often[label] == 1 else f"{label} ({_folder_name(run, runs)})"
        for label, run in zip(found, runs, strict=True)
    ]


def telling(run: RunRecords, rivals: Sequence[RunRecords], without: Sequence[str] = ()) -> list[str]:
    """What tells a run from its rivals, in words: facets in which they differ, unless its own is the usual one."""
    own, usual, others = facets(run), _usual_facets(run), [facets(rival) for rival in rivals]
    return [
        _words(name, own[name], run)
        for name in own
        if name not in without
        and any(other.get(name) != own[name] for other in others)
        and (name not in usual or usual[name] != own[name])
    ]


def usual_settings(run: RunRecords) -> dict[str, Any]:
    """What the run's benchmark sets its method to; empty for a method that is not the library's.

    Of a run that an adaptation trained from scratch: what that adaptation has by default.
    """
    manifest = run.manifest
    for info in manifest.adaptations:
        if info.from_scratch:
            return usual_adaptation(info)
    if manifest.method not in method_names():
        return {}
    benchmark = BENCHMARKS.get(manifest.benchmark or "")
    given = benchmark.settings_of(manifest.method) if benchmark else {}
    return method_class(manifest.method)(**given).settings.model_dump(mode="json")


def changed_settings(run: RunRecords) -> dict[str, Any]:
    """What was set otherwise, as far as it changes a result."""
    return _changed(run.manifest.settings, usual_settings(run))


def usual_adaptation(info: AdaptationInfo) -> dict[str, Any]:
    """The settings of an adaptation for as many images as were drawn; empty for one that is not the library's."""
    if info.method not in adaptation_names():
        return {}
    kind = adaptation_class(info.method)
    return kind(**kind().planned(len(info.images))).settings.model_dump(mode="json")


def changed_adaptation(info: AdaptationInfo) -> dict[str, Any]:
    """What was set otherwise in adapting."""
    return _changed(info.settings, usual_adaptation(info))


def other_network(run: RunRecords) -> bool:
    """Whether it has another network than its benchmark's, or one that began with weights from a file."""
    benchmark, network = BENCHMARKS.get(run.manifest.benchmark or ""), run.manifest.network
    return benchmark is not None and (network.name != benchmark.network or network.weights is not None)


def _changed(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in _without_bookkeeping(settings).items()
        if name not in usual or usual[name] != value
    }


def _without_bookkeeping(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in BOOKKEEPING}


def _adaptations(run: RunRecords) -> list[tuple[str, AdaptationInfo]]:
    """The last one first, each with what its facets' names begin with."""
    return [(f"{LAST}{BEFORE_IT * place}", info) for place, info in enumerate(run.manifest.adaptations)]


def _usual_facets(run: RunRecords) -> dict[str, Any]:
    found = usual_settings(run)
    for prefix, info in _adaptations(run):
        # From scratch, the settings of the adaptation are those of the run: they are told once.
        of = info.settings if info.from_scratch else usual_adaptation(info)
        found = found | {f"{prefix}{name}": value for name, value in of.items()}
    return found


def _words(facet: str, value: Any, run: RunRecords) -> str:
    manifest = run.manifest
    if facet == "source":
        return f"trained on {manifest.benchmark or manifest.source.name}"
    if facet == "network":
        begun = f" from {manifest.network.weights.split()[0]}" if manifest.network.weights else ""
        return f"network {manifest.network.name or manifest.network.own}{begun}"
    short = facet.removeprefix(LAST)  # where nothing else has that name
    told = facet if short in manifest.settings or short.startswith(BEFORE_IT) else short
    return f"{told}={setting_text(value)}"


def _folder_name(run: RunRecords, runs: Sequence[RunRecords]) -> str:
    """The last part of its path, or all of it where others end alike, as draws do."""
    alike = sum(other.folder.name == run.folder.name for other in runs)
    return run.folder.name if alike == 1 else str(run.folder)
