"""From records to a table: means and deviations over seeds, the paper's numbers, and what a reader must know."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from onedomain.benchmarks import Benchmark, find_benchmark
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.reproduce.declare import Column, Fact, RelativeError, Row, RunScores, Scale, Score, Table
from onedomain.reproduce.plan import configured, what_to_train

Record = Mapping[str, Any]
MOST_NAMED = 8  # domains of a note
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
    steps: int
    seeds: tuple[int, ...]  # that are there
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


def group(records: Iterable[Record], benchmark: str) -> list[RunScores]:
    """Records of a benchmark's domains, run by run; only of runs that were trained on its source."""
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
        key = json.dumps([record["method"], record["settings"], record["seed"]], sort_keys=True)
        of_run = rows.setdefault(key, {})
        runs.setdefault(key, RunScores(record["method"], record["settings"], record["seed"], of_run))
        of_domain = of_run.setdefault(record["domain"], {})
        if record["metric"] in of_domain:
            given = f"{record['method']}, seed {record['seed']}, is there twice on {record['domain']}"
            raise UserError("records", given, "each run once")
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
    benchmark = find_benchmark(table.benchmark)
    wanted = {row.key: configured(row, scale, benchmark)[0].settings for row in table.rows}
    by_row: dict[str, list[RunScores]] = {row.key: [] for row in table.rows}
    by_seed: dict[int, dict[str, RunScores]] = {}
    for run in group(records, table.benchmark):
        settings = _settings(run)
        for row in {row.key: row for row in table.rows}.values():
            if run.method == row.method and settings == wanted[row.key] and (seeds is None or run.seed in seeds):
                beside = by_seed.setdefault(run.seed, {})
                beside[row.key] = replace(run, beside=beside)
                by_row[row.key].append(beside[row.key])
    used = [run for runs in by_row.values() for run in runs]
    _refuse_other_data(used)
    scored = [name for name in benchmark.targets if all(name in run.domains for run in used)]
    asked = tuple(seeds) if seeds is not None else tuple(sorted({run.seed for run in used}))
    rows = []
    for row in table.rows:
        runs = sorted(by_row[row.key], key=lambda run: run.seed)
        minutes = cell([run.fact("train_seconds") for run in runs], None).mean
        rows.append(
            ResultRow(
                row=row,
                steps=wanted[row.key].steps,
                seeds=tuple(run.seed for run in runs),
                minutes=None if minutes is None else minutes / 60,
                cells={
                    column.name: cell(
                        [column.value(run, table.metric, scored) for run in runs],
                        column.paper(table.name, row, scored),
                        _gap(table, column, runs),
                    )
                    for column in table.columns
                },
            )
        )
    return Result(
        table=table,
        scale=scale,
        seeds=asked,
        rows=tuple(rows),
        notes=tuple(_notes(table, scale, benchmark, used, scored)),
        data=tuple(_data(used)),
        versions=_versions(used),
        command=command,
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        failures=tuple(failures),
    )


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


def _settings(run: RunScores) -> Any:
    """A run's settings, what it did not know yet as by default; None if it knew others."""
    if run.method not in method_names():
        return None
    try:
        return method_class(run.method)(**run.settings).settings
    except UserError:
        return None


def _refuse_other_data(runs: Sequence[RunScores]) -> None:
    """Scores on different images, or of different training images, are not for one table."""
    seen: dict[str, Any] = {}
    for run in runs:
        for domain, metrics in run.records.items():
            record = next(iter(metrics.values()))
            for what, images in ((f"scored on {domain}", record["data"]), ("trained", record.get("source"))):
                if seen.setdefault(what, images) != images:
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


def _notes(
    table: Table, scale: Scale, benchmark: Benchmark, runs: Sequence[RunScores], scored: Sequence[str]
) -> Iterable[str]:
    if scale.reduced:
        yield f"Reduced protocol: {scale.note}. The paper's numbers are of its whole protocol."
    yield from _missing_baselines(table, scale, benchmark, runs)
    titles = {column.name: column.title for column in table.columns if isinstance(column, Score)}
    reported = {domain for column in table.columns for domain in column.over}
    targets = [name for name in benchmark.targets if name in reported]
    absent = {name: any(name in run.domains for run in runs) for name in targets if name not in scored}
    for by_some, remark in ((False, ""), (True, " by every run")):
        names = [titles.get(name, name) for name in absent if absent[name] is by_some]
        if names:
            yield f"{_named(names, len(targets))}: not scored{remark}, for want of data."
    if absent and scored and any(not isinstance(column, (Score, Fact)) for column in table.columns):
        names = [titles.get(name, name) for name in targets if name in scored]
        over = f"the {len(names)} others" if len(names) > MOST_NAMED else ", ".join(names)
        yield f"The averages, the paper's too, are over {over}."
    remarks: dict[str, list[str]] = {}
    for each in _data(runs):
        if each["note"] and each["domain"] in targets:
            remarks.setdefault(each["note"], []).append(titles.get(each["domain"], each["domain"]))
    for remark, names in remarks.items():
        yield f"{_named(names, len(targets))}: {remark}."
    if len({run.seed for run in runs}) > 1:
        yield "Numbers after ± are sample standard deviations over seeds."
    yield from table.notes


def _named(names: Sequence[str], of: int) -> str:
    """
    >>> _named(["SVHN", "SYN"], 4), _named(["x"] * 95, 95), _named(list("abcdefghij"), 95)
    ('SVHN, SYN', 'All 95 domains', 'a, b, c, d, e, f, g and 3 others')
    """
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    if len(names) == of:
        return f"All {of} domains"
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} others"


def _missing_baselines(table: Table, scale: Scale, benchmark: Benchmark, runs: Sequence[RunScores]) -> Iterable[str]:
    """Which runs are missing that columns are relative to, and the commands that make them."""
    by_key: dict[str, list[str]] = {}
    for column in table.columns:
        if isinstance(column, RelativeError):
            by_key.setdefault(column.baseline, []).append(column.title)
    for key, titles in by_key.items():
        row = next(row for row in table.rows if row.key == key)
        changes = configured(row, scale, benchmark)[1]
        for seed in sorted({run.seed for run in runs if key not in run.beside}):
            what = [*what_to_train(benchmark.name, row, seed, changes), "--out", f"runs/{row.name}-{seed}"]
            command = shlex.join(["onedomain", "train", *what])
            yield (
                f"{', '.join(titles)}: the run of {row.label} with seed {seed} is missing or failed; "
                f"make it with: {command}"
            )
