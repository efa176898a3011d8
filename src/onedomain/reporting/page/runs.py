"""What the page says of each run: its settings, what it was made with, and how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onedomain.reporting.names import run_title
from onedomain.reporting.page.repeat import commands_to_repeat, repeatable, what_words_stand_for
from onedomain.reporting.page.tables import device
from onedomain.runs.commandline import setting_text
from onedomain.runs.identity import changed_settings
from onedomain.runs.manifest import AdaptationInfo, Manifest
from onedomain.runs.records import RunRecords


def run_details(runs: Sequence[RunRecords]) -> list[dict[str, Any]]:
    """In the order given."""
    found = []
    for run in runs:
        info = run.manifest.adaptation
        # From scratch the settings of the run are those of adapting.
        adapting = [] if info is None or info.from_scratch else _settings(info)
        found.append(
            {
                "title": run_title(run),
                "seed": f"seed {run.manifest.seed}" if info is None else f"draw {info.draw}",
                "folder": str(run.folder),
                "commands": "\n".join(commands_to_repeat(run)) if repeatable(run) else "",
                "how": _how(run),
                "facts": _facts(run),
                "settings": _settings(run.manifest),
                "adapting": adapting,
            }
        )
    return found


def _how(run: RunRecords) -> str:
    if repeatable(run):
        return what_words_stand_for(run)
    info = run.manifest.adaptation
    if info is not None:
        parent = info.parent or "a run without a folder"
        return f"Adapted from Python by {info.method}: call adapt on {parent}, with the same target, shots and seed."
    own = run.manifest.network.own or run.manifest.method
    return f"Trained from Python with {own}: call od.fit with it, the same source, seed and settings."


def _facts(run: RunRecords) -> dict[str, str]:
    manifest, environment = run.manifest, run.manifest.environment
    recorded = next(row for row in run.results if row["metric"] == "accuracy")
    return {
        **{f"adapted{' before' * place}": _adapted(info) for place, info in enumerate(manifest.adaptations)},
        "begun": _date(manifest.started),
        "scored": ", ".join(sorted({_date(row["date"]) for row in run.results if row["metric"] == "accuracy"})),
        "trained for": f"{recorded['train_seconds'] / 60:.1f} minutes, {recorded['peak_memory_mb']:,} MB at most",
        "on": f"{device(environment)}, {environment.platform}",
        "with": f"onedomain {manifest.onedomain}, torch {environment.torch}, numpy {environment.numpy}, "
        f"Python {environment.python}",
        "source": f"{manifest.source.count:,} images of {manifest.source.name} ({manifest.source.split}), "
        f"fingerprint {manifest.source.fingerprint}",
        "network": f"{manifest.network.name or manifest.network.own}, {recorded['parameters']:,} parameters, "
        f"{recorded['training_parameters']:,} while training",
    }


def _date(text: str) -> str:
    return text[:16].replace("T", " ")


def _adapted(info: AdaptationInfo) -> str:
    how = "from scratch, with" if info.from_scratch else f"from {info.parent or 'a run without a folder'}, with"
    what = f"{len(info.images)} images of {info.target} ({info.split}), {info.shots} shots, draw {info.draw}"
    return f"by {info.method} {how} {what}"


def _settings(of: Manifest | AdaptationInfo) -> list[dict[str, str]]:
    changed = changed_settings(of.settings, of.usually)
    return [
        {
            "name": name,
            "text": setting_text(value),
            "changed": f"usually {setting_text((of.usually or {})[name])}" if name in changed else "",
        }
        for name, value in of.settings.items()
    ]
