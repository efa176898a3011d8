"""What is usual for a run's settings, for run folders and records that do not say it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.methods.adapt import adaptation_class, adaptation_names
from onedomain.runs.manifest import Manifest
from onedomain.runs.records import RunRecords


def completed(run: RunRecords) -> RunRecords:
    """The run, with what is usual for its settings."""
    told = completed_record({**run.manifest.model_dump(), "trained_on": run.manifest.benchmark})
    return replace(run, manifest=Manifest(**{name: told[name] for name in Manifest.model_fields}))


def completed_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a record, or for what run.yaml says."""
    if "settings" not in row:
        return dict(row)
    benchmark = BENCHMARKS.get(row.get("trained_on") or "")
    usual, last = row.get("usually"), _adapted(row.get("adaptation"))
    scratch = last
    while scratch and not scratch["from_scratch"]:
        scratch = scratch.get("before")
    if usual is None and scratch:
        usual = scratch["usually"]
    elif usual is None and row["method"] in method_names():
        recipe = benchmark.settings_of(row["method"]) if benchmark else {}
        usual = _otherwise(method_class(row["method"]), recipe, row["settings"])
    return {**row, "usually": usual, **({"adaptation": last} if last else {})}


def _adapted(info: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if info is None:
        return None
    usual = info.get("usually")
    if usual is None and info["method"] in adaptation_names():
        kind, drawn = adaptation_class(info["method"]), info["drawn"] if "drawn" in info else len(info["images"])
        usual = _otherwise(kind, kind().planned(drawn), info["settings"])
    return {**info, "usually": usual, **({"before": _adapted(info["before"])} if "before" in info else {})}


def _otherwise(kind: Any, recipe: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usual values of those settings that were set otherwise; None for settings of another version."""
    try:
        kind(**settings)
    except UserError:
        return None
    usual = kind(**recipe).settings.model_dump(mode="json")
    return {name: value for name, value in usual.items() if name in settings and settings[name] != value}
