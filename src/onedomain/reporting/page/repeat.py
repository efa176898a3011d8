"""How to train, adapt and score a run once more: the exact commands."""

from __future__ import annotations

import shlex

from onedomain.benchmarks import BENCHMARKS
from onedomain.methods import method_names
from onedomain.methods.adapt import adaptation_names
from onedomain.runs.commandline import adapted_again, evaluate_command, onedomain, what_to_train
from onedomain.runs.identity import changed_settings
from onedomain.runs.layout import OWN
from onedomain.runs.manifest import AdaptationInfo
from onedomain.runs.records import RunRecords

NOT_DRAWN = "not drawn"  # the split of a target without test images of its own


def commands_to_repeat(run: RunRecords) -> list[str]:
    """What to type, one line a command; `DIR`, `FILE` and `RUN` stand for what only the user knows."""
    info = run.manifest.adaptation
    words = _train(run) if info is None else _adapt(run, info)
    environment, out = run.manifest.environment, f"{run.folder}-again"
    words += [] if environment.device == "cpu" else ["--device", environment.device]
    words += ["--threads", str(environment.threads), "--out", out]
    return [onedomain(words), *_evaluate(run, out)]


def repeatable(run: RunRecords) -> bool:
    """Whether the command line can do it: the library's method, adaptation and network, on a benchmark or a folder."""
    manifest = run.manifest
    trained = manifest.method in (method_names() if not run.identity.from_scratch else adaptation_names())
    adapted = all(info.method in adaptation_names() for info in manifest.adaptations)
    return manifest.network.own is None and trained and adapted


def what_words_stand_for(run: RunRecords) -> str:
    """What the words in capitals of the commands stand for; empty without such words."""
    words = {word for line in commands_to_repeat(run) for part in shlex.split(line) for word in part.split("=")}
    said = []
    if "DIR" in words:
        said.append("DIR stands for a folder of your own images: a run does not record where they were.")
    if "FILE" in words:
        said.append(f"FILE stands for the weights that training began with: {run.manifest.network.weights}.")
    if "RUN" in words:
        said.append("RUN stands for the run that was adapted, which had no folder.")
    return " ".join(said)


def _train(run: RunRecords) -> list[str]:
    manifest = run.manifest
    benchmark, network = BENCHMARKS.get(manifest.benchmark or ""), manifest.network
    usual = benchmark is not None and network.name == benchmark.network
    return [
        "train",
        *what_to_train(
            manifest.method,
            manifest.seed,
            changed_settings(manifest.settings, manifest.usually),
            benchmark=manifest.benchmark,
            size=manifest.source.image_shape[:2],
            network=None if usual else network.name,
            weights=network.weights is not None,
        ),
    ]


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
