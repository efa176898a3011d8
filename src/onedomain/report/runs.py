"""What the page says of each run: its settings, what it was made with, and how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onedomain.outcomes import OWN
from onedomain.records import RunRecords
from onedomain.report.contenders import changed_settings, method_title, usual_settings
from onedomain.report.repeat import commands_to_repeat, repeatable
from onedomain.report.tables import device
from onedomain.reproduce.paper import setting_text


def run_details(runs: Sequence[RunRecords]) -> list[dict[str, Any]]:
    """In the order given."""
    return [
        {
            "title": method_title(run.manifest.method),
            "seed": run.manifest.seed,
            "folder": str(run.folder),
            "commands": "\n".join(commands_to_repeat(run)) if repeatable(run) else "",
            "how": _how(run),
            "facts": [{"name": name, "text": text} for name, text in _facts(run).items()],
            "settings": _settings(run),
        }
        for run in runs
    ]


def _how(run: RunRecords) -> str:
    if not repeatable(run):
        own = run.manifest.network.own or run.manifest.method
        return f"Trained from Python with {own}: call od.fit with it, the same source, seed and settings."
    if run.manifest.benchmark is None or OWN in run.benchmarks:
        return "DIR stands for a folder of your own images: a run does not record where they were."
    return ""


def _facts(run: RunRecords) -> dict[str, str]:
    manifest, environment = run.manifest, run.manifest.environment
    recorded = next(row for row in run.results if row["metric"] == "accuracy")
    return {
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


def _settings(run: RunRecords) -> list[dict[str, str]]:
    usual, changed = usual_settings(run), changed_settings(run)
    return [
        {
            "name": name,
            "text": setting_text(value),
            "changed": f"usually {setting_text(usual[name])}" if name in changed and name in usual else "",
        }
        for name, value in run.manifest.settings.items()
    ]
