"""What a person reads of a run that was scored under corruptions, and the same as JSON: 95 domains in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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


class Measured(NamedTuple):
    """The robustness of a run; its mCE and RmCE at the worst severity and over all, or the command to get them."""

    found: Robustness
    relative: Mapping[str, Any]


def measured(run: Run, evaluation: Evaluation, benchmark: Benchmark) -> Measured:
    """From the run's records, relative to the ERM run beside its folder that was made in the same way."""
    rows = run.records(evaluation, benchmark.name)
    found = robustness.from_records(rows, benchmark.name)
    folder = run.folder or Path("run")
    erm = (folder, found) if run.manifest.method == "erm" else None
    erm = erm or find_erm(rows, benchmark.name, folder.resolve().parent)
    if erm is None:
        make = erm_command(identify(rows[0]), folder.with_name(f"{folder.name}-erm"))
        return Measured(found, {"erm": None, "make": make})
    ratios = {label: found.relative_to(erm[1], severity) for label, severity in (("worst", WORST), ("all", None))}
    return Measured(found, {"erm": str(erm[0]), **ratios})


def show_corruptions(run: Run, evaluation: Evaluation, measured: Measured) -> None:
    title, groups = "Uncertainty, mean over corruptions", _groups(evaluation, run.manifest.source.name)
    doubts = uncertainty(evaluation, title, "severity", groups, METRICS)
    manifest, found = run.manifest, measured.found
    about = f"{manifest.method}, seed {manifest.seed}, {run.method.settings.steps} steps: accuracy %"
    counts = sorted({scores.count for scores in evaluation.scores.values() if scores.corruption})
    of_each = " or ".join(f"{images:,}" for images in counts)
    targets = f"Targets: {'; '.join(found.notes) or 'the official files'}. {of_each} images of each."
    table = corruption_table(about, manifest.source.name, [found])
    show(replace(table, notes=[targets, *_relative_lines(measured.relative)]), doubts)


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


def _groups(evaluation: Evaluation, source: str) -> dict[str, list[Scores]]:
    """The clean images, and the corruptions at each severity."""
    every = evaluation.scores.values()
    groups = {f"{source} (clean)": [scores for scores in every if scores.corruption is None]}
    for severity in SEVERITIES:
        groups[str(severity)] = [each for each in every if each.corruption and each.corruption.severity == severity]
    return {label: group for label, group in groups.items() if group}


def as_json(measured: Measured) -> dict[str, Any]:
    found = measured.found

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
        "relative_to_erm": dict(measured.relative),
    }
