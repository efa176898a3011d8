"""Runs under corruptions: a heat map of corruption × severity for each method, and mCE and RmCE relative to ERM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.evaluation import corruption_error as robustness
from onedomain.evaluation.corruption_error import Robustness
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.reporting.page.picture import in_sight
from onedomain.reporting.page.tables import Cell, Head, Table
from onedomain.runs.baseline import BASELINE, command_for_erm, trained_alike
from onedomain.runs.records import RunRecords

WORST = SEVERITIES[-1]  # the severity of the paper's Table 4
GAP = "–"


@dataclass(frozen=True)
class HeatCell:
    text: str
    share: float | None  # of the colour, %; None where nothing was scored


@dataclass(frozen=True)
class HeatRow:
    name: str
    cells: Sequence[HeatCell]  # a severity each, and their mean
    mean: bool = False  # of its category, or of all


@dataclass(frozen=True)
class HeatMap:
    """One method: a block of rows for each category, and one of means."""

    id: str
    title: str
    blocks: Sequence[tuple[str, Sequence[HeatRow]]]


@dataclass(frozen=True)
class Corruptions:
    maps: Sequence[HeatMap]
    table: Table
    remarks: Sequence[str]


def corruptions(comparison: Comparison, identity: str) -> Corruptions | None:
    """None for a benchmark whose targets are something else."""
    if not comparison.corrupted:
        return None
    found = {each.title: [_robustness(comparison, run) for run in each.runs] for each in comparison.contenders}
    shown = [each.title for each in in_sight(comparison)]
    maps = [_map(f"{identity}-map-{place}", title, found[title]) for place, title in enumerate(shown, start=1)]
    table, missing = _robustness_table(comparison, found, f"{identity}-robustness")
    notes = sorted({column.note for column in comparison.unseen if column.note})
    remarks = [f"The corrupted images: {'; '.join(notes)}."] if notes else []
    return Corruptions(maps, table, [*remarks, *missing])


def _robustness(comparison: Comparison, run: RunRecords) -> Robustness:
    """Of the clean images and of the corruptions that every run was scored on, on the same images."""
    chosen = {*comparison.compared, *(column.name for column in comparison.sources)}
    rows = [row for row in run.results if row["domain"] in chosen]
    return robustness.from_records(rows, comparison.benchmark)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _map(identity: str, title: str, runs: Sequence[Robustness]) -> HeatMap:
    def row(name: str, of: Callable[[Robustness, int | None], float | None], mean: bool = False) -> HeatRow:
        severities = [*SEVERITIES, None]
        return HeatRow(name, [_heat_cell(_mean(of(run, severity) for run in runs)) for severity in severities], mean)

    def of_kinds(kinds: Sequence[str]) -> Callable[[Robustness, int | None], float | None]:
        return lambda run, severity: run.of_kinds(kinds, severity)

    blocks = [
        (category, [*(row(kind, of_kinds((kind,))) for kind in kinds), row("mean", of_kinds(kinds), mean=True)])
        for category, kinds in CATEGORIES.items()
    ]
    of_all = [
        row(f"{len(KINDS)} corruptions", of_kinds(KINDS), mean=True),
        row(f"{len(CATEGORIES)} categories", lambda run, severity: run.of_categories(severity), mean=True),
    ]
    return HeatMap(identity, title, [*blocks, ("means", of_all)])


def _heat_cell(value: float | None) -> HeatCell:
    return HeatCell(GAP, None) if value is None else HeatCell(f"{100 * value:.0f}", round(100 * value, 1))


def _robustness_table(
    comparison: Comparison, found: dict[str, list[Robustness]], identity: str
) -> tuple[Table, list[str]]:
    """A row a method: accuracies by level, and mCE and RmCE of the runs that have an ERM run beside them."""
    heads = [Head("method", False), Head("clean"), *(Head(f"level {severity}") for severity in SEVERITIES)]
    heads += [Head("mean"), Head("categories"), Head("mCE"), Head("RmCE")]
    heads += [Head(f"mCE at {WORST}"), Head(f"RmCE at {WORST}")]
    rows, missing = [], []
    for contender in comparison.contenders:
        runs = found[contender.title]
        accuracies = [_mean(run.clean for run in runs)]
        accuracies += [_mean(run.of_kinds(KINDS, severity) for run in runs) for severity in (*SEVERITIES, None)]
        accuracies += [_mean(run.of_categories() for run in runs)]
        pairs = []
        for run, own in zip(contender.runs, runs, strict=True):
            erm = _erm_beside(comparison, found, run)
            if erm is None:
                missing.append((contender, run))
            else:
                pairs.append((own, erm))
        ratios = [
            _mean(own.relative_to(erm, severity)[name] for own, erm in pairs)
            for severity in (None, WORST)
            for name in ("mce", "rmce")
        ]
        cells = [_cell(value, 100, 1) for value in accuracies] + [_cell(value, 1, 3) for value in ratios]
        rows.append([Cell(contender.title, contender.title), *cells])
    caption = (
        "Accuracy by level of severity, %, and its means over corruptions and over categories; mCE and RmCE, errors "
        f"relative to ERM's (lower is better), over all levels and at level {WORST}"
    )
    return Table(identity, caption, heads, rows), _without_erm(missing)


def _cell(value: float | None, factor: float, digits: int) -> Cell:
    return Cell(GAP) if value is None else Cell(f"{factor * value:.{digits}f}", value)


def _erm_beside(comparison: Comparison, found: dict[str, list[Robustness]], own: RunRecords) -> Robustness | None:
    """The ERM run among those given that was trained as this one, and not adapted."""
    for contender in comparison.contenders:
        if contender.method == BASELINE and not contender.adapted_to:
            for run, scored in zip(contender.runs, found[contender.title], strict=True):
                if trained_alike(_as_row(run), _as_row(own)):
                    return scored
    return None


def _as_row(run: RunRecords) -> dict[str, Any]:
    """What a record says of its run."""
    manifest = run.manifest
    return {
        "method": manifest.method,
        "trained_on": manifest.benchmark,
        "seed": manifest.seed,
        "source": manifest.source.fingerprint,
        "settings": manifest.settings,
    }


def _without_erm(missing: Sequence[tuple[Contender, RunRecords]]) -> list[str]:
    """For each run of ERM that is missing, whose mCE needs it and the command that makes it."""
    needed: dict[str, list[str]] = {}
    for contender, run in missing:
        trained_on = BENCHMARKS.get(run.manifest.benchmark or "")
        usual = trained_on.settings.get(BASELINE, {}) if trained_on else {}
        out = Path(run.folder).with_name(f"{BASELINE}-{run.manifest.seed}")
        command = command_for_erm(_as_row(run), usual, out)
        needed.setdefault(command, []).append(f"{contender.title}, seed {run.manifest.seed}")
    return [
        f"mCE and RmCE of {'; '.join(runs)}: no ERM run with these settings is among the given; make it with: {command}"
        for command, runs in needed.items()
    ]
