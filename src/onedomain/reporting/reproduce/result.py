"""From records to a table: means and deviations over seeds, the paper's numbers, and what a reader must know."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Any

from onedomain.benchmarks import Benchmark
from onedomain.errors import UserError
from onedomain.reporting.average import mean_of_known, shared_domains
from onedomain.reporting.reproduce.columns import Column, RunScores
from onedomain.reporting.reproduce.declare import PARENT_SEED, Row, Scale, Table
from onedomain.reporting.reproduce.notes import Rivals, notes_on
from onedomain.reporting.reproduce.plan import benchmark_at
from onedomain.runs.identity import changed_settings, decides, first_difference, identify
from onedomain.runs.job import Ended

Record = Mapping[str, Any]
NEEDED = ("benchmark", "method", "settings", "seed", "domain", "metric", "value", "data", "onedomain")


@dataclass(frozen=True)
class Cell:
    """One number: ours over seeds, with the sample standard deviation of two or more, and the paper's."""

    values: tuple[float, ...]
    paper: float | None
    gap: str = ""  # why there is no mean, if there is more to say than that no run has it

    @property
    def mean(self) -> float | None:
        return mean_of_known(self.values)

    @property
    def deviation(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None

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
    failures: tuple[Ended, ...] = ()


def group(records: Iterable[Record], benchmark: str, metric: str, prefix: str = "") -> list[RunScores]:
    """Records of a benchmark's domains, run by run; only of runs that were trained on its source.

    A `prefix` tells domains of several benchmarks apart.
    """
    runs: dict[tuple[Any, ...], RunScores] = {}
    for record in records:
        if record.get("benchmark") != benchmark or record.get("trained_on", benchmark) != benchmark:
            continue
        if "data" not in record:  # of a domain that was made, or of several together
            continue
        absent = [name for name in NEEDED if name not in record]
        if absent:
            raise UserError("records", f"one has no {absent[0]!r}", "records written by onedomain")
        identity = identify(record)
        run = runs.setdefault((identity.setting, identity.repetition), RunScores(identity, metric))
        of_domain = run.records.setdefault(f"{prefix}{record['domain']}", {})
        if record["metric"] in of_domain:
            adapted = run.adaptation
            which = run.name if adapted is None else f"{run.name}, {adapted['shots']} shots, draw {run.number}"
            raise UserError("records", f"{which}, is there twice on {record['domain']}", "each run once")
        of_domain[record["metric"]] = record
    return list(runs.values())


def tabulate(
    table: Table,
    scale: Scale,
    records: Sequence[Record],
    *,
    seeds: Sequence[int] | None = None,
    failures: Sequence[Ended] = (),
    command: str = "",
    steps: Mapping[str, int] | None = None,
) -> Result:
    """The table of these records; those of other settings or seeds are left out. No `seeds`: all there are.

    `steps` says how many a row without a run would have, by the row's name.
    """
    by_part: dict[str, list[RunScores]] = {part.name: [] for part in table.grid}
    of: dict[str, list[str]] = {}  # the targets of each benchmark
    for name in table.benchmarks:
        benchmark, prefix = benchmark_at(name, scale), f"{name}/" if any(row.tasks for row in table.rows) else ""
        of[name] = [f"{prefix}{target}" for target in benchmark.targets]
        for run in group(records, name, table.metric, prefix):
            for part in table.grid:
                wanted = seeds is None or run.number in table.seeds_of(part, seeds)
                if wanted and table.benchmark_of(part) == name and _belongs(run, part, scale, benchmark):
                    by_part[part.name].append(run)
    by_row = [[run for part in row.parts for run in by_part.get(part.name, [])] for row in table.rows]
    used = list({id(run): run for runs in by_row for run in runs}.values())
    data = _data(used)
    for runs in by_part.values():
        _refuse_other_settings(runs)
    targets = list(dict.fromkeys(target for each in of.values() for target in each))
    shared = {name: shared_domains([run.records for run in used if run.benchmark == name]) for name in of}
    lacking = {target for name in {run.benchmark for run in used} for target in of[name] if target not in shared[name]}
    scored = [target for target in targets if target not in lacking]
    asked = tuple(seeds) if seeds is not None else tuple(sorted({run.number for run in used}))
    shown = [_together(runs) for runs in by_row]
    rivals = {
        (table.benchmark_of(row), run.number, row.key): run
        for row, runs in zip(table.rows, shown, strict=True)
        for run in runs
    }
    rows = []
    for row, runs, ours in zip(table.rows, by_row, shown, strict=True):
        seconds = mean_of_known(run.any_record.get("train_seconds") for run in runs)  # of every task
        last = {**runs[0].any_record, **(runs[0].adaptation or {})} if runs else {}
        rows.append(
            ResultRow(
                row=row,
                steps=int(last["settings"]["steps"]) if last else (steps or {}).get(row.name),
                seeds=tuple(run.number for run in ours),
                asked=() if row.not_run else table.seeds_of(row, asked),
                minutes=None if seconds is None else seconds / 60,
                cells={column.name: _cell(table, row, column, ours, rivals, scored) for column in table.columns},
            )
        )
    return Result(
        table=table,
        scale=scale,
        seeds=asked,
        rows=tuple(rows),
        notes=tuple(notes_on(table, scale, targets, shown, rivals, scored, data, steps or {})),
        data=tuple(data),
        versions=_versions(used),
        command=command,
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        failures=tuple(failures),
    )


def _cell(
    table: Table, row: Row, column: Column, runs: Sequence[RunScores], rivals: Rivals, scored: Sequence[str]
) -> Cell:
    beside = [rivals.get((table.benchmark_of(row), run.number, column.baseline)) for run in runs]
    gap = ""
    if runs and column.baseline:
        label = next(each.label for each in table.rows if each.key == column.baseline)
        gap = "not defined" if any(beside) else f"no {label}"
    values = [column.value(run, scored, baseline) for run, baseline in zip(runs, beside, strict=True)]
    known = tuple(value for value in values if value is not None)
    # A table of several benchmarks has the paper's numbers under each of these.
    return Cell(known, column.paper(row.benchmark or table.name, row.key, scored), "" if known else gap)


def _together(runs: Sequence[RunScores]) -> list[RunScores]:
    """By seed or draw; of several tasks those of one number as one run."""
    found: dict[int, RunScores] = {}
    for run in sorted(runs, key=lambda run: run.number):
        before = found.get(run.number)
        found[run.number] = replace(before, records={**before.records, **run.records}) if before else run
    return list(found.values())


def _belongs(run: RunScores, row: Row, scale: Scale, benchmark: Benchmark) -> bool:
    """Whether a run on the benchmark is one of the row's: by what was set otherwise, all else being as usual."""
    told, how = run.adaptation, row.adaptation
    if told is None or how is None:
        return (
            told is None
            and how is None
            and _is_set(run.any_record, scale, row.method, row.settings, row.recipe_settings)
        )
    if (told["method"], told["shots"]) != (how.method, how.shots):
        return False
    if told["target"] not in benchmark.target_train or told.get("adapted_before", True) or run.seed != PARENT_SEED:
        return False
    scratch = told["from_scratch"]
    adapted = _is_set(told, scale, how.method, how.settings, fewer_steps=scratch)
    return adapted and (scratch or _is_set(run.any_record, scale, row.method, row.settings, row.recipe_settings))


def _is_set(
    told: Record,
    scale: Scale,
    method: str,
    given: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    fewer_steps: bool = True,
) -> bool:
    """Whether a record, or the adaptation that it tells, has a row's method and settings at a scale."""
    settings, usually = told["settings"], told.get("usually")
    if told["method"] != method or usually is None:
        return False
    steps = usually.get("steps", settings["steps"]) if fewer_steps else None
    wanted = scale.changes(method, given, steps, recipe)
    changed = changed_settings(settings, usually)
    return changed.keys() <= wanted.keys() and all(settings.get(name) == value for name, value in wanted.items())


def _refuse_other_settings(runs: Sequence[RunScores]) -> None:
    """What is usual may be another in another version: runs of one row that differ in it are no repetitions."""
    known = frozenset[str]().union(*(run.identity.settings for run in runs))
    for run in runs[1:]:
        first = runs[0]
        name = first_difference(first.identity, run.identity, lambda name: name in known and decides(name))
        if name:
            one, other = (each.identity.facts.get(name) for each in (first, run))
            given = f"{name} is {one!r} in one run ({first.name}) and {other!r} in another ({run.name})"
            raise UserError("records", given, "runs of one setting in a row")


def _data(runs: Sequence[RunScores]) -> list[dict[str, Any]]:
    """The domains. Scores on different images, or of different training images, are not for one benchmark."""
    found: dict[str, dict[str, Any]] = {}
    seen: dict[tuple[str, str], Any] = {}
    for run in runs:
        for domain, metrics in run.records.items():
            record = next(iter(metrics.values()))
            for what, images in ((f"scored on {domain}", record["data"]), ("trained", record.get("source"))):
                if seen.setdefault((run.benchmark, what), images) != images:
                    given = f"the runs were not {what} with the same images ({run.name}, and others)"
                    raise UserError("records", given, "runs with one copy of the data")
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
        for name, version in {
            "onedomain": run.any_record["onedomain"],
            **run.any_record.get("environment", {}),
        }.items():
            found.setdefault(name, set()).add(str(version))
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}
