"""From records to a table: means and deviations over seeds, the paper's numbers, and what a reader must know."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from onedomain.benchmarks import Benchmark
from onedomain.errors import UserError
from onedomain.methods.base import Method
from onedomain.reporting.reproduce.columns import Column, RelativeError, RunScores
from onedomain.reporting.reproduce.declare import PARENT_SEED, Scale, Table
from onedomain.reporting.reproduce.notes import notes_on
from onedomain.reporting.reproduce.plan import adapting, benchmark_at, configured
from onedomain.reporting.reproduce.rows import Row

Record = Mapping[str, Any]
NEEDED = ("benchmark", "method", "settings", "seed", "domain", "metric", "value", "data", "onedomain")


@dataclass(frozen=True)
class Cell:
    """One number: ours over seeds, with the sample standard deviation of two or more, and the paper's."""

    values: tuple[float, ...]
    mean: float | None
    deviation: float | None
    paper: float | None
    gap: str = ""  # why there is no mean, if there is more to say than that no run has it

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.paper is None else self.mean - self.paper


@dataclass(frozen=True)
class ResultRow:
    row: Row
    steps: int | None  # of training or, of an adapted row, of adapting; None where nothing says it
    seeds: tuple[int, ...]  # that are there
    asked: tuple[int, ...]  # that should be
    minutes: float | None  # of training, the mean over seeds
    cells: Mapping[str, Cell]  # by the column's name


@dataclass(frozen=True)
class Failure:
    run: str
    error: str
    log: str


@dataclass(frozen=True)
class Result:
    """A table with all that it must say of itself."""

    table: Table
    scale: Scale
    seeds: tuple[int, ...]  # that were asked for
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...]
    data: tuple[Mapping[str, Any], ...]  # the domains that were scored
    versions: Mapping[str, str]
    command: str
    date: str
    failures: tuple[Failure, ...] = ()


def group(records: Iterable[Record], benchmark: str, prefix: str = "") -> list[RunScores]:
    """Records of a benchmark's domains, run by run; only of runs that were trained on its source.

    A `prefix` tells domains of several benchmarks apart.
    """
    runs: dict[str, RunScores] = {}
    rows: dict[str, dict[str, dict[str, Record]]] = {}
    for record in records:
        if record.get("benchmark") != benchmark or record.get("trained_on", benchmark) != benchmark:
            continue
        if "data" not in record:  # of a domain that was made, or of several together
            continue
        absent = [name for name in NEEDED if name not in record]
        if absent:
            raise UserError("records", f"one has no {absent[0]!r}", "records written by onedomain")
        adaptation = record.get("adaptation")
        how = {name: value for name, value in (adaptation or {}).items() if not name.startswith("parent")}
        key = json.dumps([record["method"], record["settings"], record["seed"], how], sort_keys=True)
        of_run = rows.setdefault(key, {})
        run = RunScores(record["method"], record["settings"], record["seed"], of_run, adaptation)
        runs.setdefault(key, run)
        of_domain = of_run.setdefault(f"{prefix}{record['domain']}", {})
        if record["metric"] in of_domain:
            which = f"seed {run.seed}" if adaptation is None else f"{adaptation['shots']} shots, draw {run.number}"
            raise UserError("records", f"{run.method}, {which}, is there twice on {record['domain']}", "each run once")
        of_domain[record["metric"]] = record
    return list(runs.values())


def tabulate(
    table: Table,
    scale: Scale,
    records: Sequence[Record],
    *,
    seeds: Sequence[int] | None = None,
    failures: Sequence[Failure] = (),
    command: str,
) -> Result:
    """The table of these records; those of other methods, settings or seeds are left out. No `seeds`: all there are."""
    benchmarks = {name: benchmark_at(name, scale) for name in table.benchmarks}
    prefixes = {name: f"{name}/" if any(row.tasks for row in table.rows) else "" for name in benchmarks}
    by_part: dict[str, list[RunScores]] = {part.name: [] for part in table.grid}
    for name, benchmark in benchmarks.items():
        for run in group(records, name, prefixes[name]):
            for part in table.grid:
                wanted = seeds is None or run.number in table.seeds_of(part, seeds)
                if wanted and table.benchmark_of(part) == name and _belongs(run, part, scale, benchmark):
                    by_part[part.name].append(run)
    by_row = [[run for part in row.parts for run in by_part.get(part.name, [])] for row in table.rows]
    used = list({id(run): run for runs in by_row for run in runs}.values())
    _refuse_other_data(used)
    of = {name: [f"{prefixes[name]}{target}" for target in benchmark.targets] for name, benchmark in benchmarks.items()}
    targets = list(dict.fromkeys(target for each in of.values() for target in each))
    scored = [target for target in targets if all(target in run.domains for run in used if target in of[run.benchmark])]
    asked = tuple(seeds) if seeds is not None else tuple(sorted({run.number for run in used}))
    shown = _beside_each_other(table, by_row)
    rows = []
    for row, runs, ours in zip(table.rows, by_row, shown, strict=True):
        rows.append(_row(table, scale, row, runs, ours, scored, asked, benchmarks))
    data = _data(used)
    return Result(
        table=table,
        scale=scale,
        seeds=asked,
        rows=tuple(rows),
        notes=tuple(notes_on(table, scale, targets, shown, scored, data)),
        data=tuple(data),
        versions=_versions(used),
        command=command,
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        failures=tuple(failures),
    )


def _row(
    table: Table,
    scale: Scale,
    row: Row,
    runs: Sequence[RunScores],  # of every task
    ours: Sequence[RunScores],
    scored: Sequence[str],
    asked: Sequence[int],
    benchmarks: Mapping[str, Benchmark],
) -> ResultRow:
    minutes = cell([run.fact("train_seconds") for run in runs], None).mean
    return ResultRow(
        row=row,
        steps=_steps(row, scale, runs, benchmarks[table.benchmark_of(row.parts[0])]) if not row.not_run else None,
        seeds=tuple(run.number for run in ours),
        asked=() if row.not_run else table.seeds_of(row, asked),
        minutes=None if minutes is None else minutes / 60,
        cells={
            column.name: cell(
                [column.value(run, table.metric, scored) for run in ours],
                column.paper(table.name, row, scored),
                _gap(table, column, ours),
            )
            for column in table.columns
        },
    )


def _beside_each_other(table: Table, by_row: Sequence[Sequence[RunScores]]) -> list[list[RunScores]]:
    """The runs of each row, every one with those of the other rows that have its benchmark and its number."""
    together = [_together(runs) for runs in by_row]
    beside: dict[tuple[str, int], dict[str, RunScores]] = {}
    for row, runs in zip(table.rows, together, strict=True):
        for run in runs:
            beside.setdefault((table.benchmark_of(row), run.number), {})[row.key] = run
    return [
        [replace(run, beside=beside[table.benchmark_of(row), run.number]) for run in runs]
        for row, runs in zip(table.rows, together, strict=True)
    ]


def _together(runs: Sequence[RunScores]) -> list[RunScores]:
    """By seed or draw; of several tasks those of one number as one run."""
    found: dict[int, RunScores] = {}
    for run in sorted(runs, key=lambda run: run.number):
        before = found.get(run.number)
        found[run.number] = replace(before, records={**before.records, **run.records}) if before else run
    return list(found.values())


def _steps(row: Row, scale: Scale, runs: Sequence[RunScores], benchmark: Benchmark) -> int | None:
    if row.adaptation is None:
        return configured(row, scale, benchmark)[0].settings.steps
    told = [int(run.adaptation["settings"]["steps"]) for run in runs if run.adaptation]
    return told[0] if told else None


def _belongs(run: RunScores, row: Row, scale: Scale, benchmark: Benchmark) -> bool:
    """Whether a run on the benchmark is one of the row's, by all that decides its result but seed and draw."""
    if row.adaptation is None or run.adaptation is None:
        trained = row.adaptation is None and run.adaptation is None
        return trained and _is_method(run, configured(row, scale, benchmark)[0])
    told = run.adaptation
    if (told["method"], told["shots"]) != (row.adaptation.method, row.adaptation.shots):
        return False
    if told["target"] not in benchmark.target_train or told.get("adapted_before", True) or run.seed != PARENT_SEED:
        return False
    wanted, _ = adapting(row.adaptation, scale, told["drawn"])
    same = _read_settings(type(wanted), told["settings"]) == wanted.settings
    return same and (wanted.from_scratch or _is_method(run, configured(row, scale, benchmark)[0]))


def _is_method(run: RunScores, method: Method) -> bool:
    return run.method == method.name and _read_settings(type(method), run.settings) == method.settings


def cell(values: Sequence[float | None], paper: float | None, gap: str = "") -> Cell:
    """
    >>> cell([1.0, 3.0], 1.5)
    Cell(values=(1.0, 3.0), mean=2.0, deviation=1.4142135623730951, paper=1.5, gap='')
    """
    known = tuple(value for value in values if value is not None)
    mean = fmean(known) if known else None
    return Cell(known, mean, stdev(known) if len(known) > 1 else None, paper, "" if known else gap)


def _gap(table: Table, column: Column, runs: Sequence[RunScores]) -> str:
    """What a cell says of runs without a value."""
    if not runs or not isinstance(column, RelativeError):
        return ""
    there = any(column.baseline in run.beside for run in runs)
    return "not defined" if there else f"no {_baseline(table, column).label}"


def _baseline(table: Table, column: RelativeError) -> Row:
    return next(row for row in table.rows if row.key == column.baseline)


def _read_settings(kind: type[Method], settings: Mapping[str, Any]) -> Any:
    """A run's settings, what it did not know yet as by default; None if it knew others."""
    try:
        return kind(**settings).settings
    except UserError:
        return None


def _refuse_other_data(runs: Sequence[RunScores]) -> None:
    """Scores on different images, or of different training images, are not for one benchmark of a table."""
    seen: dict[tuple[str, str], Any] = {}
    for run in runs:
        for domain, metrics in run.records.items():
            record = next(iter(metrics.values()))
            for what, images in ((f"scored on {domain}", record["data"]), ("trained", record.get("source"))):
                if seen.setdefault((run.benchmark, what), images) != images:
                    given = f"the runs were not {what} with the same images ({run.method}, seed {run.seed}, and others)"
                    raise UserError("records", given, "runs with one copy of the data")


def _data(runs: Sequence[RunScores]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for domain, metrics in run.records.items():
            record = next(iter(metrics.values()))
            found[domain] = {
                "domain": domain,
                "images": record.get("count"),
                "note": record.get("note", ""),
                "fingerprint": record["data"],
            }
    return list(found.values())


def _versions(runs: Sequence[RunScores]) -> dict[str, str]:
    """What the runs were made with; several of a kind with commas."""
    found: dict[str, set[str]] = {}
    for run in runs:
        record = run.any_record
        for name, version in {"onedomain": record["onedomain"], **record.get("environment", {})}.items():
            found.setdefault(name, set()).add(str(version))
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}
