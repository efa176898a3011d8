"""From a table to its runs: which there are, which are done, and what the others need."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onedomain.benchmarks import Benchmark, find_benchmark
from onedomain.data.domain import Domain
from onedomain.errors import UserError, unknown
from onedomain.methods import method_class
from onedomain.methods.adapt import adaptation_class
from onedomain.reporting.reproduce.declare import PARENT_SEED, Adapting, Row, Scale, Table
from onedomain.runs.commandline import what_to_adapt, what_to_train
from onedomain.runs.identity import BEFORE_IT, LAST, Identity, first_difference, identify, spoken
from onedomain.runs.layout import BEFORE, MANIFEST
from onedomain.runs.manifest import refuse_used_folder
from onedomain.runs.recipe import DEFAULT, FILE, find_recipe, is_file, read_recipe
from onedomain.runs.records import RunRecords, read_run

if TYPE_CHECKING:
    from onedomain.methods.adapt.base import Adaptation
    from onedomain.methods.base import Method

State = Literal["done", "to score", "going on", "new"]


@dataclass(frozen=True)
class Bench:
    """A benchmark with its data at hand."""

    benchmark: Benchmark
    source: Domain
    scored: Mapping[str, Domain]
    missing: tuple[str, ...]  # why the others are not scored, a line each
    drawn: Mapping[str, int] = field(default_factory=dict)  # of each target that is adapted to: classes with images

    @classmethod
    def load(cls, benchmark: Benchmark, data: Path, adapting: bool = False) -> Bench:
        """Everything that the runs will read: what is wrong with it is told before anything is started.

        With `adapting` that is also what targets are drawn from.
        """
        source = benchmark.train(data)
        if benchmark.calibration is not None:
            benchmark.calibration(data)
        scored, missing = benchmark.load_for_scoring(data)
        pools = {name: load(data) for name, load in benchmark.target_train.items()} if adapting else {}
        drawn = {name: len(set(pool.labels[:].ravel().tolist())) for name, pool in pools.items()}
        return cls(benchmark, source, scored, tuple(missing), drawn)


@dataclass(frozen=True)
class PlannedRun:
    """One run of the grid, and what there is of it."""

    row: Row
    seed: int
    method: Method
    folder: Path
    state: State
    changes: Mapping[str, Any]  # what differs from the benchmark's settings
    bench: Bench
    records: RunRecords | None = None
    parent: PlannedRun | None = None  # what an adapted run comes from
    target: str = ""  # what it is adapted to

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.seed}"

    @property
    def beside(self) -> dict[str, Any]:
        """What differs from the row's recipe as well."""
        recipe = self.row.recipe_settings
        return {name: value for name, value in self.changes.items() if recipe.get(name, self) != value}

    @property
    def steps_done(self) -> int:
        return max((row["step"] for row in self.records.metrics), default=0) if self.records else 0

    def command(self, data: str | None, device: str | None, threads: int = 1) -> tuple[str, ...]:
        """What brings the run to its end from where it is."""
        where = [*(["--data", data] if data else []), *(["--device", device] if device else [])]
        where += ["--threads", str(threads)]
        start, out = [sys.executable, "-m", "onedomain"], ["--resume", "--out", str(self.folder)]
        if self.row.adaptation and self.parent:  # finished or not: adapting scores what it has not scored
            given = (self.target, self.row.adaptation.shots, self.row.adaptation.method, self.seed, self.changes)
            return (*start, "adapt", *what_to_adapt(str(self.parent.folder), *given), *out, *where)
        if self.state == "to score":
            return (*start, "evaluate", str(self.folder), "--benchmark", self.bench.benchmark.name, *where)
        on = self.bench.benchmark
        trained = what_to_train(self.row.method, self.seed, self.beside, benchmark=on.name, network=on.network)
        trained += ["--recipe", self.row.recipe] if self.row.recipe else []
        return (*start, "train", *trained, *out, *where)


def benchmark_at(name: str, scale: Scale) -> Benchmark:
    """As a scale runs it, which may have another network."""
    benchmark = find_benchmark(name)
    return replace(benchmark, network=scale.network or benchmark.network)


def configured(row: Row, scale: Scale, benchmark: Benchmark) -> tuple[Method, dict[str, Any]]:
    """The row's method as the table runs it, and what differs from the benchmark's settings."""
    kind, usual = method_class(row.method), benchmark.settings_of(row.method)
    changes = scale.changes(row.method, row.settings, kind(**usual).settings.steps, row.recipe_settings)
    return kind(**{**usual, **changes}), changes


def adapting(adaptation: Adapting, scale: Scale, drawn: int) -> tuple[Adaptation, dict[str, Any]]:
    """A row's adaptation to so many drawn images, and what differs from its settings.

    A scale shares the steps of training from scratch; others are few, and found by the number of images.
    """
    kind = adaptation_class(adaptation.method)
    steps = kind().settings.steps if kind.from_scratch else None
    changes = scale.changes(adaptation.method, adaptation.settings, steps)
    return kind(**kind(**changes).planned(drawn)), changes


def by_recipe(table: Table, recipe: str) -> Table:
    """The table with those of its rows by a recipe whose methods have it; by a file those of its method."""
    rows, known = [], set[str]()
    file = read_recipe(Path(recipe)) if is_file(recipe) else None
    for row in table.rows:
        names = {} if row.not_run else _recipes(table, row)
        known |= names.keys()
        if not row.not_run and (recipe in names or (file is not None and file.method == row.method)):
            settings = find_recipe(recipe, row.method, names).settings
            row = replace(row, recipe=recipe, recipe_settings=settings)
        rows.append(row)
    if not any(row.recipe for row in rows):
        raise unknown("--recipe", recipe, [DEFAULT, *known, FILE])
    return replace(table, rows=tuple(rows), title=f"{table.title}, by the recipe {Path(recipe).name}")


def _recipes(table: Table, row: Row) -> dict[str, dict[str, Any]]:
    benchmark = find_benchmark(table.benchmark_of(row.parts[0]))
    return benchmark.recipes_of(row.method, method_class(row.method).recipes)


def planned_steps(table: Table, scale: Scale) -> dict[str, int]:
    """The steps of each row of trained runs, by its name: what a table says of a row without a run."""
    benchmarks = {name: benchmark_at(name, scale) for name in table.benchmarks}
    rows = [row for row in table.rows if not row.adaptation and not row.not_run]
    return {
        row.name: configured(row, scale, benchmarks[table.benchmark_of(row.parts[0])])[0].settings.steps for row in rows
    }


def plan(
    table: Table,
    scale: Scale,
    seeds: int,
    out: Path,
    benches: Mapping[str, Bench],
    elsewhere: Sequence[str] = (),
) -> list[PlannedRun]:
    """The runs of a table, seed by seed.

    Finished ones with the same settings may lie `elsewhere`, in run folders or folders of them.
    """
    others: list[RunRecords] = []
    for place in map(Path, elsewhere):
        inside = [place] if (place / MANIFEST).exists() else sorted(path.parent for path in place.glob(f"*/{MANIFEST}"))
        if not inside:
            raise UserError("--use", f"no run in {place}", "run folders, or folders of them")
        others += [read_run(folder, unfinished=True) for folder in inside]
    runs: dict[str, PlannedRun] = {}
    for seed in range(seeds):
        for row in table.grid:
            if seed in table.seeds_of(row, range(seeds)):
                parent = runs[f"{row.trained.name}-{PARENT_SEED}"] if row.adaptation else None
                name, bench = f"{row.name}-{seed}", benches[table.benchmark_of(row)]
                runs[name] = _planned(row, seed, scale, out / name, bench, others, parent)
    return list(runs.values())


def _planned(
    row: Row, seed: int, scale: Scale, folder: Path, bench: Bench, others: list[RunRecords], parent: PlannedRun | None
) -> PlannedRun:
    method: Method | Adaptation
    target, of, adaptation = "", parent, None
    if row.adaptation is None or parent is None:
        method, changes = configured(row, scale, bench.benchmark)
    else:
        target, classes = next(iter(bench.drawn.items()))
        method, changes = adapting(row.adaptation, scale, row.adaptation.shots * classes)
        adaptation = _set(method, changes) | {"target": target, "shots": row.adaptation.shots, "draw": seed}
        adaptation["from_scratch"] = method.from_scratch
        of = None if method.from_scratch else parent  # of the parent nothing is left
    wanted = identify(
        (_set(of.method, of.changes) if of else _set(method, changes))
        | {
            "seed": parent.seed if parent else seed,
            "trained_on": bench.benchmark.name,
            "network": {"name": bench.benchmark.network},
            "source": bench.source.fingerprint,
            "adaptation": adaptation,
        }
    )
    state: State = "new"
    if (folder / MANIFEST).exists():
        found: RunRecords | None = read_run(folder, unfinished=True)
    else:
        refuse_used_folder(folder)
        same = (other for other in others if not _difference(other, wanted))
        found = next((other for other in same if _state(other, bench) == "done"), None)
    if found:
        if reason := _difference(found, wanted):
            raise UserError(str(folder), reason, "another --out, or remove that folder")
        folder, state = found.folder, _state(found, bench)
    return PlannedRun(row, seed, method, folder, state, changes, bench, found, parent, target)


def _set(method: Method, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": method.name, "settings": method.settings.model_dump(mode="json"), "usually": changes}


def _difference(found: RunRecords, wanted: Identity) -> str:
    """What makes a run another one than the planned one; empty if it is the same."""
    there, info = found.identity, found.manifest.adaptation
    if (info is not None) is not wanted.adapted:
        return f"holds a run that was adapted to {info.target}" if info else "holds a run that was not adapted"

    def compared(name: str) -> bool:
        if name == "network.name" and there.facts[name] is None:
            return False  # one of the user's own has no name, and is the user's to answer for
        if name == "seed" and wanted.from_scratch:
            return False
        return name in wanted.facts or name in there.settings or name.startswith(f"{LAST}{BEFORE_IT}")

    name = first_difference(there, wanted, compared)
    if name:
        is_there, is_wanted = there.facts.get(name), wanted.facts.get(name)
        return f"holds a run whose {spoken(name)} is {is_there!r}, and here it is {is_wanted!r}"
    others = sorted(there.settings - wanted.settings)
    return f"holds a run with settings of another version ({', '.join(others)})" if others else ""


def _state(run: RunRecords, bench: Bench) -> State:
    """A finished run is done when it was scored on every domain that there is, as it is now."""
    if not run.finished:
        return "going on"
    if run.manifest.adaptation and not (run.folder / BEFORE).exists():
        return "to score"
    rows = run.scores(bench.benchmark.name)
    known = {name: next(iter(of.values()))["data"] for name, of in rows.items()}
    return "done" if all(known.get(name) == each.fingerprint for name, each in bench.scored.items()) else "to score"
