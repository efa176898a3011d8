"""What is usual for a run's settings, for run folders and records that do not say it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.methods.adapt import adaptation_class, adaptation_names
from onedomain.runs.manifest import AdaptationInfo
from onedomain.runs.records import RunRecords


def usually(method: str, settings: Mapping[str, Any], benchmark: str | None) -> dict[str, Any] | None:
    """The usual values of those settings that were set otherwise; None for a method that is not the library's."""
    known = BENCHMARKS.get(benchmark or "")
    recipe = known.settings_of(method) if known else {}
    return _otherwise(method_class(method), recipe, settings) if method in method_names() else None


def usually_adapted(method: str, settings: Mapping[str, Any], drawn: int) -> dict[str, Any] | None:
    """The same for an adaptation to so many drawn images."""
    if method not in adaptation_names():
        return None
    kind = adaptation_class(method)
    return _otherwise(kind, kind().planned(drawn), settings)


def _otherwise(kind: Any, recipe: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        kind(**settings)
    except UserError:  # of a version with other settings
        return None
    usual = kind(**recipe).settings.model_dump(mode="json")
    return {name: value for name, value in usual.items() if name in settings and settings[name] != value}


def completed(run: RunRecords) -> RunRecords:
    """The run, with what is usual for its settings."""
    manifest = run.manifest
    info = None if manifest.adaptation is None else _completed(manifest.adaptation)
    told = manifest.usually
    if told is None:
        scratch = next((each for each in (info.history() if info else ()) if each.from_scratch), None)
        told = scratch.usually if scratch else usually(manifest.method, manifest.settings, manifest.benchmark)
    return replace(run, manifest=manifest.model_copy(update={"usually": told, "adaptation": info}))


def _completed(info: AdaptationInfo) -> AdaptationInfo:
    told = info.usually if info.usually is not None else usually_adapted(info.method, info.settings, len(info.images))
    before = None if info.before is None else _completed(info.before)
    return info.model_copy(update={"usually": told, "before": before})


def completed_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a record."""
    if "settings" not in row or row.get("usually") is not None:
        return dict(row)
    info = row.get("adaptation")
    if info is None:
        return {**row, "usually": usually(row["method"], row["settings"], row.get("trained_on"))}
    info = {**info, "usually": usually_adapted(info["method"], info["settings"], info["drawn"])}
    own = info["usually"] if info["from_scratch"] else usually(row["method"], row["settings"], row.get("trained_on"))
    return {**row, "usually": own, "adaptation": info}
