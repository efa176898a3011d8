"""Runs under corruptions: accuracy by corruption and severity for each method, and mCE and RmCE relative to ERM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.evaluation import corruption_error as robustness
from onedomain.evaluation.corruption_error import Robustness
from onedomain.reporting.average import mean_of_known
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.reproduce.columns import WORST
from onedomain.reporting.table import GROUP_MEAN, MEAN, PLAIN, Cell, Row, Table, number, numbers, percent
from onedomain.runs.baseline import BASELINE, command_for_erm, trained_alike
from onedomain.runs.identity import Identity
from onedomain.runs.records import RunRecords


class Corruptions(NamedTuple):
    maps: Sequence[Table]
    table: Table
    remarks: Sequence[str]


def corruption_table(title: str, clean: str, runs: Sequence[Robustness], digits: int = 2) -> Table:
    """Corruptions by category as rows, severities as columns; means over the runs of one method."""

    def row(name: str, of: Callable[[Robustness, int | None], float | None], kind: str, apart: bool = False) -> Row:
        values = [mean_of_known(of(run, severity) for run in runs) for severity in (*SEVERITIES, None)]
        return Row(name, [percent(value, digits) for value in values], kind, apart=apart)

    def of_kinds(kinds: Sequence[str]) -> Callable[[Robustness, int | None], float | None]:
        return lambda run, severity: run.of_kinds(kinds, severity)

    known = mean_of_known(run.clean for run in runs)
    rows = [] if known is None else [Row(f"{clean} (clean)", [*[Cell("")] * len(SEVERITIES), percent(known, digits)])]
    for category, kinds in CATEGORIES.items():
        rows += [row(kind, of_kinds((kind,)), PLAIN, apart=kind == kinds[0]) for kind in kinds]
        rows.append(row(category, of_kinds(kinds), GROUP_MEAN))
    scored = sum(all(run.of_kind(kind) is not None for run in runs) for kind in KINDS)
    which = f"{scored}" if scored == len(KINDS) else f"{scored} of {len(KINDS)}"
    rows.append(row(f"mean of {which} corruptions", of_kinds(KINDS), MEAN, apart=True))
    rows.append(row(f"mean of {len(CATEGORIES)} categories", lambda run, level: run.of_categories(level), MEAN))
    return Table(title, "corruption, severity", numbers(*map(str, SEVERITIES), "mean"), rows)


def corruptions(comparison: Comparison, identity: str) -> Corruptions | None:
    """None for a benchmark whose targets are something else."""
    if not comparison.corrupted:
        return None
    # Of the clean images and of the corruptions that every run was scored on, on the same images.
    chosen = {*comparison.compared, *(column.name for column in comparison.sources)}
    found = {
        each.title: [
            robustness.from_records([row for row in run.results if row["domain"] in chosen], comparison.benchmark)
            for run in each.runs
        ]
        for each in comparison.contenders
    }
    clean = next((column.name for column in comparison.sources), "")
    maps = [
        replace(
            corruption_table(title, clean, runs, digits=0), id=f"{identity}-map-{place}", look="heat", sortable=False
        )
        for place, (title, runs) in enumerate(found.items(), start=1)
    ]
    table, missing = _robustness_table(comparison, found, f"{identity}-robustness")
    notes = sorted({column.note for column in comparison.unseen if column.note})
    remarks = [f"The corrupted images: {'; '.join(notes)}."] if notes else []
    return Corruptions(maps, table, [*remarks, *missing])


def _robustness_table(
    comparison: Comparison, found: dict[str, list[Robustness]], identity: str
) -> tuple[Table, list[str]]:
    """One row per method: accuracies by level, and mCE and RmCE of the runs that have an ERM run beside them.

    For each run of ERM that is missing, whose mCE needs it and the command that makes it.
    """
    levels = [f"level {severity}" for severity in SEVERITIES]
    ratios_at = ("mCE", "RmCE", f"mCE at {WORST}", f"RmCE at {WORST}")
    rows, missing = [], dict[str, list[str]]()
    for contender in comparison.contenders:
        runs = found[contender.title]
        accuracies = [mean_of_known(run.clean for run in runs)]
        accuracies += [mean_of_known(run.of_kinds(KINDS, severity) for run in runs) for severity in (*SEVERITIES, None)]
        accuracies += [mean_of_known(run.of_categories() for run in runs)]
        pairs = []
        for run, own in zip(contender.runs, runs, strict=True):
            erm = _erm_beside(comparison, found, run)
            if erm is None:
                make = erm_command(run.identity, Path(run.folder).with_name(f"{BASELINE}-{run.manifest.seed}"))
                missing.setdefault(make, []).append(f"{contender.title}, seed {run.manifest.seed}")
            else:
                pairs.append((own, erm))
        ratios = [
            mean_of_known(own.relative_to(erm, severity)[name] for own, erm in pairs)
            for severity in (None, WORST)
            for name in ("mce", "rmce")
        ]
        rows.append(Row(contender.title, [*(percent(value, 1) for value in accuracies), *map(number, ratios)]))
    caption = (
        "Accuracy by level of severity, %, and its means over corruptions and over categories; mCE and RmCE, errors "
        f"relative to ERM's (lower is better), over all levels and at level {WORST}"
    )
    columns = numbers("clean", *levels, "mean", "categories", *ratios_at)
    return Table(caption, "method", columns, rows, id=identity), [
        f"mCE and RmCE of {'; '.join(runs)}: no ERM run with these settings is among the given; make it with: {command}"
        for command, runs in missing.items()
    ]


def _erm_beside(comparison: Comparison, found: dict[str, list[Robustness]], own: RunRecords) -> Robustness | None:
    """The ERM run among those given that was trained as this one, and not adapted."""
    for contender in comparison.contenders:
        if contender.manifest.method == BASELINE and not contender.adapted_to:
            for run, scored in zip(contender.runs, found[contender.title], strict=True):
                if trained_alike(run.identity, own.identity):
                    return scored
    return None


def erm_command(run: Identity, out: Path) -> str:
    """What makes the ERM run that a run's mCE is relative to."""
    trained_on = BENCHMARKS.get(run.facts["benchmark"] or "")
    return command_for_erm(run, trained_on.settings_of(BASELINE) if trained_on else {}, out)
