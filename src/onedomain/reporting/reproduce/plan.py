"""From a table to its runs: which there are, which are done, and what the others need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from onedomain.benchmarks import Benchmark, find_benchmark
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.methods import method_class
from onedomain.methods.adapt import adaptation_class
from onedomain.methods.adapt.base import Adaptation
from onedomain.methods.base import Method
from onedomain.reporting.reproduce.declare import PARENT_SEED, Scale, Table
from onedomain.reporting.reproduce.paper import setting_text
from onedomain.reporting.reproduce.rows import Adapting, Row
from onedomain.runs.layout import BEFORE, MANIFEST
from onedomain.runs.manifest import Manifest, refuse_used_folder
from onedomain.runs.records import RunRecords, read_run

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
        benchmark.load_calibration(data)
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
    benchmark: Benchmark
    records: RunRecords | None = None
    parent: PlannedRun | None = None  # what an adapted run comes from
    target: str = ""  # what it is adapted to

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.seed}"

    @property
    def steps_done(self) -> int:
        return max((row["step"] for row in self.records.metrics), default=0) if self.records else 0

    def command(self, data: str | None, device: str | None) -> tuple[str, ...]:
        """What brings the run to its end from where it is."""
        benchmark, adapting = self.benchmark.name, self.row.adaptation
        where = [*(["--data", data] if data else []), *(["--device", device] if device else []), "--threads", "1"]
        start = [sys.executable, "-m", "onedomain"]
        changes = as_options(self.changes)
        out = ["--resume", "--out", str(self.folder), "--seed", str(self.seed)]
        if adapting and self.parent:  # finished or not: adapting scores what it has not scored
            what = ["--target", self.target, "--shots", str(adapting.shots), "--method", adapting.method]
            return (*start, "adapt", str(self.parent.folder), *out, *what, *changes, *where)
        if self.state == "to score":
            return (*start, "evaluate", str(self.folder), "--benchmark", benchmark, *where)
        return (*start, "train", *out, *what_to_train(self.benchmark, self.row), *changes, *where)


def what_to_train(benchmark: Benchmark, row: Row) -> list[str]:
    """The options of `onedomain train` that say which row a run is of."""
    return ["--benchmark", benchmark.name, "--method", row.method, "--network", benchmark.network]


def as_options(changes: Mapping[str, Any]) -> list[str]:
    """
    >>> as_options({"steps": 9, "meta": False})
    ['--set', 'steps=9', '--set', 'meta=false']
    """
    return [part for name, value in changes.items() for part in ("--set", f"{name}={setting_text(value)}")]


def benchmark_at(name: str, scale: Scale) -> Benchmark:
    """As a scale runs it, which may have another network."""
    benchmark = find_benchmark(name)
    return replace(benchmark, network=scale.network or benchmark.network)


def configured(row: Row, scale: Scale, benchmark: Benchmark) -> tuple[Method, dict[str, Any]]:
    """The row's method as the table runs it, and what differs from the benchmark's settings."""
    kind, usual = method_class(row.method), benchmark.settings_of(row.method)
    changes: dict[str, Any] = {}
    if scale.share < 1:
        changes["steps"] = max(1, round(scale.share * kind(**usual).settings.steps))
    changes |= {**scale.settings.get(row.method, {}), **row.settings}
    return kind(**{**usual, **changes}), changes


def adapting(adaptation: Adapting, scale: Scale, drawn: int) -> tuple[Adaptation, dict[str, Any]]:
    """A row's adaptation to so many drawn images, and what differs from its settings.

    Where a rule finds the number of steps, a scale leaves them as they are: they are few.
    """
    kind = adaptation_class(adaptation.method)
    changes: dict[str, Any] = {}
    if scale.share < 1 and kind().settings.steps == kind().planned(drawn)["steps"]:
        changes["steps"] = max(1, round(scale.share * kind().settings.steps))
    changes |= {**scale.settings.get(adaptation.method, {}), **adaptation.settings}
    return kind(**kind(**changes).planned(drawn)), changes


def plan(
    table: Table,
    scale: Scale,
    seeds: int,
    out: Path,
    benches: Mapping[str, Bench],
    elsewhere: Sequence[str] = (),
) -> list[PlannedRun]:
    """The runs of a table, seed by seed; finished ones with the same settings may lie `elsewhere`."""
    others = [read_run(folder, unfinished=True) for folder in _run_folders(elsewhere)]
    runs: dict[str, PlannedRun] = {}
    for seed in range(seeds):
        for row in table.grid:
            if seed in table.seeds_of(row, range(seeds)):
                parent = runs[f"{row.trained.name}-{PARENT_SEED}"] if row.adaptation else None
                run = _planned(row, seed, scale, out, benches[table.benchmark_of(row)], others, parent)
                runs[run.name] = run
    return list(runs.values())


def _planned(
    row: Row,
    seed: int,
    scale: Scale,
    out: Path,
    bench: Bench,
    others: Sequence[RunRecords],
    parent: PlannedRun | None,
) -> PlannedRun:
    method: Method | Adaptation
    differs: Callable[[Manifest], str | None]
    target = ""
    if row.adaptation is None or parent is None:
        method, changes = configured(row, scale, bench.benchmark)
        differs = partial(difference, method=method, seed=seed, bench=bench)
    else:
        target, classes = next(iter(bench.drawn.items()))
        method, changes = adapting(row.adaptation, scale, row.adaptation.shots * classes)
        wanted = {"target": target, "shots": row.adaptation.shots, "draw": seed}
        differs = partial(adapted_difference, wanted=wanted, method=method, parent=parent, bench=bench)
    folder, benchmark = out / f"{row.name}-{seed}", bench.benchmark
    run = PlannedRun(row, seed, method, folder, "new", changes, benchmark, parent=parent, target=target)
    if (run.folder / MANIFEST).exists():
        found: RunRecords | None = read_run(run.folder, unfinished=True)
    else:
        refuse_used_folder(run.folder)
        same = (other for other in others if differs(other.manifest) is None)
        found = next((other for other in same if _state(other, bench) == "done"), None)
    if found is None:
        return run
    if reason := differs(found.manifest):
        raise UserError(str(run.folder), reason, "another --out, or remove that folder")
    return replace(run, folder=found.folder, state=_state(found, bench), records=found)


def difference(manifest: Manifest, method: Method, seed: int, bench: Bench) -> str | None:
    """What makes a run another one than that of a method, seed and benchmark; None if it is the same."""
    if manifest.adaptation is not None:
        return f"holds a run that was adapted to {manifest.adaptation.target}"
    facts = [("method", manifest.method, method.name), ("seed", manifest.seed, seed), *_where(manifest, bench)]
    return _first(facts) or _other_settings(method, manifest.settings)


def adapted_difference(
    manifest: Manifest, wanted: Mapping[str, Any], method: Adaptation, parent: PlannedRun, bench: Bench
) -> str | None:
    """What makes a run another one than that of an adaptation; of the parent of one from scratch nothing is left."""
    info = manifest.adaptation
    if info is None:
        return "holds a run that was not adapted"
    facts = [(name, getattr(info, name), value) for name, value in wanted.items()]
    facts.append(("earlier target", info.before.target if info.before else None, None))
    found = _first([("adaptation", info.method, method.name), *facts, *_where(manifest, bench)])
    found = found or _other_settings(method, info.settings)
    if found or method.from_scratch:
        return found
    trained = [("method", manifest.method, parent.method.name), ("seed", manifest.seed, parent.seed)]
    return _first(trained) or _other_settings(parent.method, manifest.settings)


def _where(manifest: Manifest, bench: Bench) -> list[tuple[str, Any, Any]]:
    return [
        ("benchmark", manifest.benchmark, bench.benchmark.name),
        # One of the user's own has no name, and is the user's to answer for.
        ("network", manifest.network.name or bench.benchmark.network, bench.benchmark.network),
        ("source data", manifest.source.fingerprint, bench.source.fingerprint),
    ]


def _other_settings(method: Method, settings: Mapping[str, Any]) -> str | None:
    try:
        there = type(method)(**settings).settings.model_dump()  # what it did not know yet is as by default
    except UserError as error:
        return f"holds a run with settings of another version ({error})"
    wanted = method.settings.model_dump()
    return _first([(name, there[name], wanted[name]) for name in wanted])


def _first(facts: Iterable[tuple[str, Any, Any]]) -> str | None:
    for name, is_there, is_wanted in facts:
        if is_there != is_wanted:
            return f"holds a run whose {name} is {is_there!r}, and here it is {is_wanted!r}"
    return None


def _state(run: RunRecords, bench: Bench) -> State:
    """A finished run is done when it was scored on every domain that there is, as it is now."""
    if not run.finished:
        return "going on"
    if run.manifest.adaptation and not (run.folder / BEFORE).exists():
        return "to score"
    rows = run.scores(bench.benchmark.name)
    known = {name: next(iter(of.values()))["data"] for name, of in rows.items()}
    return "done" if all(known.get(name) == each.fingerprint for name, each in bench.scored.items()) else "to score"


def _run_folders(places: Iterable[str]) -> list[Path]:
    """The run folders given, and those inside the folders given."""
    folders: list[Path] = []
    for place in map(Path, places):
        inside = [place] if (place / MANIFEST).exists() else sorted(path.parent for path in place.glob(f"*/{MANIFEST}"))
        if not inside:
            raise UserError("--use", f"no run in {place}", "run folders, or folders of them")
        folders += inside
    return folders
