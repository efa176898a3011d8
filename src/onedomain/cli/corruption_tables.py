"""What a person reads of a run that was scored under corruptions, and the same as JSON: 95 domains in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onedomain.benchmarks import Benchmark
from onedomain.cli.tables import UNCERTAINTY, uncertainty
from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.evaluation import corruption_error as robustness
from onedomain.evaluation.corruption_error import Robustness
from onedomain.evaluation.scores import Evaluation, Scores
from onedomain.reporting.corruption_tables import corruption_table, erm_command
from onedomain.reporting.render.terminal import show
from onedomain.reporting.reproduce.columns import WORST
from onedomain.reporting.table import number
from onedomain.runs.baseline import find_erm
from onedomain.runs.identity import identify
from onedomain.training.run import Run

METRICS = {"nll": "NLL", "ece": "ECE %", **{name: UNCERTAINTY[name] for name in UNCERTAINTY if name != "entropy"}}


def measured(run: Run, evaluation: Evaluation, benchmark: Benchmark) -> tuple[Robustness, dict[str, Any]]:
    """The robustness of a run; its mCE and RmCE at the worst severity and over all, or the command to get them.

    They are relative to the ERM run beside its folder that was made in the same way.
    """
    rows = run.records(evaluation, benchmark.name)
    found = robustness.from_records(rows, benchmark.name)
    folder = run.folder or Path("run")
    erm = (folder, found) if run.manifest.method == "erm" else None
    erm = erm or find_erm(rows, benchmark.name, folder.resolve().parent)
    if erm is None:
        make = erm_command(identify(rows[0]), folder.with_name(f"{folder.name}-erm"))
        return found, {"erm": None, "make": make}
    ratios = {label: found.relative_to(erm[1], severity) for label, severity in (("worst", WORST), ("all", None))}
    return found, {"erm": str(erm[0]), **ratios}


def show_corruptions(run: Run, evaluation: Evaluation, found: Robustness, relative: Mapping[str, Any]) -> None:
    manifest, every = run.manifest, evaluation.scores.values()
    groups: dict[str, list[Scores]] = {}  # the clean images, and the corruptions at each severity
    for each in sorted(every, key=lambda scores: scores.corruption.severity if scores.corruption else 0):
        level = str(each.corruption.severity) if each.corruption else f"{manifest.source.name} (clean)"
        groups.setdefault(level, []).append(each)
    doubts = uncertainty(evaluation, "Uncertainty, mean over corruptions", "severity", groups, METRICS)
    about = f"{manifest.method}, seed {manifest.seed}, {run.method.settings.steps} steps: accuracy %"
    counts = sorted({scores.count for scores in every if scores.corruption})
    of_each = " or ".join(f"{images:,}" for images in counts)
    targets = f"Targets: {'; '.join(found.notes) or 'the official files'}. {of_each} images of each."
    table = corruption_table(about, manifest.source.name, [found])
    show(replace(table, notes=[targets, *_relative_lines(relative)]), doubts)


def _relative_lines(relative: Mapping[str, Any]) -> list[str]:
    if relative["erm"] is None:
        return [
            f"mCE, RmCE: no ERM run with these settings and targets beside this one; make it with: {relative['make']}"
        ]
    lines = []
    for label, values in ((f"severity {WORST}", relative["worst"]), ("all severities", relative["all"])):
        undefined = "not defined (ERM loses nothing under a corruption)"
        text = ", ".join(
            f"{name} {number(values[key], gap=undefined).text}" for name, key in (("mCE", "mce"), ("RmCE", "rmce"))
        )
        lines.append(f"{text}  ({label}, relative to {relative['erm']})")
    return lines


def as_json(found: Robustness, relative: Mapping[str, Any]) -> dict[str, Any]:
    def means(severity: int | None) -> dict[str, Any]:
        return {
            "corruptions": found.of_kinds(KINDS, severity),
            "categories": found.of_categories(severity),
            **{category: found.of_kinds(kinds, severity) for category, kinds in CATEGORIES.items()},
        }

    return {
        "clean": found.clean,
        "accuracy": {kind: dict(severities) for kind, severities in found.accuracy.items()},
        "mean": {"all": means(None), **{str(severity): means(severity) for severity in SEVERITIES}},
        "missing": [kind for kind in KINDS if found.of_kind(kind) is None],
        "notes": list(found.notes),
        "relative_to_erm": dict(relative),
    }
