"""What the page says of each run: its settings, what it was made with, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.methods import method_names
from onedomain.methods.adapt import adaptation_names
from onedomain.reporting.names import run_title
from onedomain.reporting.page.tables import device
from onedomain.runs.commandline import (
    adapted_again,
    evaluate_command,
    launched,
    onedomain,
    setting_text,
    what_to_train,
)
from onedomain.runs.identity import changed_settings
from onedomain.runs.layout import OWN
from onedomain.runs.manifest import AdaptationInfo, Manifest
from onedomain.runs.records import RunRecords


def run_details(runs: Sequence[RunRecords]) -> list[dict[str, Any]]:
    """In the order given."""
    found = []
    for run in runs:
        info, own, commands = run.manifest.adaptation, run.manifest.network.own or run.manifest.method, ""
        if repeatable(run):
            commands, how = "\n".join(commands_to_repeat(run)), what_words_stand_for(run)
        elif info is not None:
            parent = info.parent or "a run without a folder"
            how = f"Adapted from Python by {info.method}: call adapt on {parent}, with the same target, shots and seed."
        else:
            how = f"Trained from Python with {own}: call od.fit with it, the same source, seed and settings."
        found.append(
            {
                "title": run_title(run),
                "seed": f"seed {run.manifest.seed}" if info is None else f"draw {info.draw}",
                "folder": str(run.folder),
                "commands": commands,
                "how": how,
                "facts": _facts(run),
                "settings": _settings(run.manifest),
                # From scratch the settings of the run are those of adapting.
                "adapting": [] if info is None or info.from_scratch else _settings(info),
            }
        )
    return found


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


NOT_DRAWN = "not drawn"  # the split of a target without test images of its own


def commands_to_repeat(run: RunRecords) -> list[str]:
    """What to type, one line a command; `DIR`, `FILE` and `RUN` stand for what only the user knows."""
    info = run.manifest.adaptation
    words = _train(run) if info is None else _adapt(run, info)
    environment, out = run.manifest.environment, f"{run.folder}-again"
    words += [] if environment.device == "cpu" else ["--device", environment.device]
    words += ["--threads", str(environment.threads), "--out", out]
    return [launched(onedomain(words), environment.processes if info is None else 1), *_evaluate(run, out)]


def repeatable(run: RunRecords) -> bool:
    """Whether the command line can do it: the library's method, adaptation and network, on a benchmark or a folder."""
    manifest = run.manifest
    trained = manifest.method in (method_names() if not run.identity.from_scratch else adaptation_names())
    adapted = all(info.method in adaptation_names() for info in manifest.adaptations)
    return manifest.network.own is None and trained and adapted


def what_words_stand_for(run: RunRecords) -> str:
    """What the words in capitals of the commands stand for; empty without such words."""
    words = {word for line in commands_to_repeat(run) for part in shlex.split(line) for word in part.split("=")}
    meanings = {
        "DIR": "DIR stands for a folder of your own images: a run does not record where they were.",
        "FILE": f"FILE stands for the weights that training began with: {run.manifest.network.file}.",
        "RUN": "RUN stands for the run that was adapted, which had no folder.",
    }
    return " ".join(meaning for word, meaning in meanings.items() if word in words)


def _train(run: RunRecords) -> list[str]:
    manifest = run.manifest
    benchmark, network = BENCHMARKS.get(manifest.benchmark or ""), manifest.network
    usual = benchmark is not None and network.name == benchmark.network
    words = what_to_train(
        manifest.method,
        manifest.seed,
        changed_settings(manifest.settings, manifest.usually),
        benchmark=manifest.benchmark,
        size=manifest.source.image_shape[:2],
        network=None if usual else network.name,
        weights="FILE" if network.file else "none" if network.has_own and network.weights is None else "",
    )
    return ["train", *words, *(["--objective", manifest.objective] if manifest.objective else [])]


def _adapt(run: RunRecords, info: AdaptationInfo) -> list[str]:
    words = ["adapt", *adapted_again(info, changed_settings(info.settings, info.usually))]
    scored = run.scores(info.benchmark or OWN).get(info.target, {})
    if info.benchmark is None and any(row["split"] != NOT_DRAWN for row in scored.values()):
        words += ["--test", "DIR"]
    manifest = run.manifest
    if manifest.benchmark is None and (info.from_scratch or manifest.source.name in run.scores(OWN)):
        words += ["--source", "DIR"]
    return words


def _evaluate(run: RunRecords, out: str) -> list[str]:
    """For what training, or adapting, does not score by itself."""
    manifest, info = run.manifest, run.manifest.adaptation
    lines = []
    for benchmark in run.benchmarks:
        by_itself: set[str] = set()
        if info is not None:
            by_itself = {info.target} if benchmark == (info.benchmark or OWN) else set()
            by_itself |= {manifest.source.name} if benchmark == (manifest.benchmark or OWN) else set()
        elif benchmark == manifest.benchmark:
            by_itself = set(run.scores(benchmark))
        left = [domain for domain in run.scores(benchmark) if domain not in by_itself]
        if left:
            lines.append(evaluate_command(out, benchmark, left))
    return lines
