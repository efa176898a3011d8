"""Runs that differ by their seed alone are one thing to compare: they share a name, a line and a mean."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onedomain.records import RunRecords

MOST_NAMED = 2  # settings that a name says; with more of them the folder's name is shorter


@dataclass(frozen=True)
class Group:
    """Runs of one method with the same settings on the same source, and the name that tells them from others."""

    label: str
    runs: tuple[RunRecords, ...]

    @property
    def method(self) -> str:
        return self.runs[0].manifest.method

    @property
    def settings(self) -> dict[str, Any]:
        return self.runs[0].manifest.settings

    def accuracies(self, benchmark: str) -> dict[str, list[float]]:
        """The accuracy of every run, by domain, in the order of scoring."""
        found: dict[str, list[float]] = {}
        for run in self.runs:
            for domain, metrics in run.scores(benchmark).items():
                if "accuracy" in metrics:
                    found.setdefault(domain, []).append(metrics["accuracy"]["value"])
        return found

    def averages(self, benchmark: str) -> list[float]:
        """The mean accuracy over the unseen domains, of every run."""
        means = []
        for run in self.runs:
            rows = [metrics["accuracy"] for metrics in run.scores(benchmark).values() if "accuracy" in metrics]
            values = [row["value"] for row in rows if row["unseen"]]
            if values:
                means.append(sum(values) / len(values))
        return means


def group_runs(runs: Sequence[RunRecords]) -> list[Group]:
    """The runs by method, settings and source, in the order given.

    A group is named by its method; if there are several of it, by what is unusual in its settings as well.
    """
    together: dict[str, list[RunRecords]] = {}
    for run in runs:
        manifest = run.manifest
        key = [manifest.title, manifest.benchmark, manifest.source.fingerprint, manifest.settings]
        key += [manifest.adaptation.settings] if manifest.adaptation else []
        together.setdefault(json.dumps(key, sort_keys=True), []).append(run)
    groups = list(together.values())
    labels = [_label(group[0], [other[0] for other in groups]) for group in groups]
    if len(set(labels)) < len(labels):
        labels = [f"{group[0].manifest.title} ({group[0].folder.name})" for group in groups]
    return [Group(label, tuple(group)) for label, group in zip(labels, groups, strict=True)]


def _label(run: RunRecords, others: Sequence[RunRecords]) -> str:
    title, settings = run.manifest.title, run.manifest.settings
    rivals = [other.manifest.settings for other in others if other.manifest.title == title]
    telling = [name for name in settings if json.dumps(settings[name]) != _usual(name, rivals)]
    if len(telling) > MOST_NAMED:
        return f"{title} ({run.folder.name})"
    return ", ".join([title, *(f"{name}={_short(settings[name])}" for name in telling)])


def _usual(name: str, rivals: Sequence[dict[str, Any]]) -> str | None:
    """What most have for a setting, as JSON: it need not be said. None if two values are as frequent."""
    counts = Counter(json.dumps(rival.get(name)) for rival in rivals).most_common(2)
    return None if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
