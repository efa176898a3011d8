"""What a person reads of a run that was scored under corruptions, and the same as JSON: 95 domains as one grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from onedomain.benchmarks import BENCHMARKS, Benchmark
from onedomain.cli.tables import new_console, new_table, percent
from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.evaluation import corruption_error as robustness
from onedomain.evaluation.corruption_error import Robustness
from onedomain.evaluation.scores import Evaluation
from onedomain.training.run import Run

WORST = SEVERITIES[-1]  # the severity of the paper's Table 4
_UNCERTAINTY = {
    "nll": "NLL",
    "ece": "ECE %",
    "brier": "Brier",
    "error_auroc": "error AUROC",
    "aurc": "AURC",
    "domain_score": "domain score",
    "flagged": "flagged %",
}


class Measured(NamedTuple):
    """The robustness of a run, and its mCE and RmCE at the worst severity and over all, or how to come by them."""

    found: Robustness
    relative: Mapping[str, Any]


def measured(run: Run, evaluation: Evaluation, benchmark: Benchmark) -> Measured:
    """From the run's records, relative to the ERM run beside its folder that was made in the same way."""
    rows = run.records(evaluation, benchmark.name)
    found = robustness.from_records(rows, benchmark.name)
    folder = run.folder or Path("run")
    erm = (folder, found) if run.manifest.method == "erm" else None
    erm = erm or robustness.find_erm(rows, benchmark.name, folder.resolve().parent)
    if erm is None:
        trained_on = BENCHMARKS.get(run.manifest.benchmark or "")
        usual = trained_on.settings.get("erm", {}) if trained_on else {}
        make = robustness.command_for_erm(rows[0], usual, folder.with_name(f"{folder.name}-erm"))
        return Measured(found, {"erm": None, "make": make})
    ratios = {label: found.relative_to(erm[1], severity) for label, severity in (("worst", WORST), ("all", None))}
    return Measured(found, {"erm": str(erm[0]), **ratios})


def show_corruptions(run: Run, evaluation: Evaluation, measured: Measured) -> None:
    """Corruptions by category as rows, severities as columns."""
    manifest, found = run.manifest, measured.found
    title = f"{manifest.method}, seed {manifest.seed}, {run.method.settings.steps} steps: accuracy %"
    columns = [*map(str, SEVERITIES), "mean"]
    table = new_table("corruption, severity", *columns, title=title)
    if found.clean is not None:
        table.add_row(f"{manifest.source.name} (clean)", *[""] * len(SEVERITIES), percent(found.clean))
        table.add_section()
    every = [*SEVERITIES, None]
    for category, kinds in CATEGORIES.items():
        for kind in kinds:
            table.add_row(kind, *(_cell(found.of_kind(kind, severity)) for severity in every))
        table.add_row(category, *(_cell(found.of_kinds(kinds, severity)) for severity in every), style="italic")
        table.add_section()
    scored = sum(found.of_kind(kind) is not None for kind in KINDS)
    label = f"mean of {scored} corruptions" if scored == len(KINDS) else f"mean of {scored} of {len(KINDS)} corruptions"
    table.add_row(label, *(_cell(found.of_kinds(KINDS, severity)) for severity in every), style="bold")
    label = "mean of 4 categories"
    table.add_row(label, *(_cell(found.of_categories(severity)) for severity in every), style="bold")
    console = new_console()
    console.print(table)
    counts = sorted({scores.count for scores in evaluation.scores.values() if scores.corruption})
    of_each = " or ".join(f"{count:,}" for count in counts)
    console.print(f"Targets: {'; '.join(found.notes) or 'the official files'}. {of_each} images of each.")
    for line in _relative_lines(measured.relative):
        console.print(line, soft_wrap=True)
    _show_uncertainty(evaluation, manifest.source.name)


def _relative_lines(relative: Mapping[str, Any]) -> list[str]:
    if relative["erm"] is None:
        return [
            f"mCE, RmCE: no ERM run with these settings and targets beside this one; make it with: {relative['make']}"
        ]
    lines = []
    for label, values in ((f"severity {WORST}", relative["worst"]), ("all severities", relative["all"])):
        text = ", ".join(f"{name} {_ratio(values[key])}" for name, key in (("mCE", "mce"), ("RmCE", "rmce")))
        lines.append(f"{text}  ({label}, relative to {relative['erm']})")
    return lines


def _ratio(value: float | None) -> str:
    return "not defined (ERM loses nothing under a corruption)" if value is None else f"{value:.3f}"


def _show_uncertainty(evaluation: Evaluation, source: str) -> None:
    """Means over the corruptions at each severity, and the clean images."""
    table = new_table("severity", *_UNCERTAINTY.values(), title="Uncertainty, mean over corruptions")
    every = evaluation.scores.values()
    groups = {f"{source} (clean)": [scores for scores in every if scores.corruption is None]}
    for severity in SEVERITIES:
        groups[str(severity)] = [each for each in every if each.corruption and each.corruption.severity == severity]
    for label, group in groups.items():
        if not group:
            continue
        cells = []
        for metric in _UNCERTAINTY:
            known = [value for scores in group if (value := getattr(scores, metric)) is not None]
            mean = fmean(known) if known else math.nan
            shares = metric in ("ece", "flagged")
            cells.append("–" if math.isnan(mean) else percent(mean) if shares else f"{mean:.3f}")
        table.add_row(label, *cells)
    console = new_console()
    console.print(table)
    correlation = evaluation.rank_correlation()
    if correlation is not None:
        console.print(f"Rank correlation of domain score and accuracy lost, unseen domains: {correlation:.2f}")


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


def _cell(value: float | None) -> str:
    return "–" if value is None else percent(value)
