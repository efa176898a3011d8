"""From a table to its runs: which there are, which are done, and what the others need."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from onedomain.benchmarks import Benchmark
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.manifest import MANIFEST, Manifest, refuse_used_folder
from onedomain.methods import method_class
from onedomain.methods.base import Method
from onedomain.records import RunRecords, read_run
from onedomain.reproduce.declare import Row, Scale, Table
from onedomain.reproduce.paper import setting_text

State = Literal["done", "to score", "going on", "new"]


@dataclass(frozen=True)
class Bench:
    """A benchmark with its data at hand."""

    benchmark: Benchmark
    source: Domain
    scored: Mapping[str, Domain]
    missing: tuple[str, ...]  # why the others are not scored, a line each

    @classmethod
    def load(cls, benchmark: Benchmark, data: Path, network: str | None = None) -> Bench:
        """Everything that the runs will read: what is wrong with it is told before anything is started.

        A `network` takes the place of the benchmark's.
        """
        benchmark = replace(benchmark, network=network or benchmark.network)
        source = benchmark.train(data)
        benchmark.calibration(data)
        scored, missing = benchmark.load_for_scoring(data)
        return cls(benchmark, source, scored, tuple(missing))


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

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.seed}"

    @property
    def steps_done(self) -> int:
        return max((row["step"] for row in self.records.metrics), default=0) if self.records else 0

    def command(self, data: str | None, device: str | None) -> tuple[str, ...]:
        """What brings the run to its end from where it is."""
        benchmark = self.benchmark.name
        where = [*(["--data", data] if data else []), *(["--device", device] if device else []), "--threads", "1"]
        start = [sys.executable, "-m", "onedomain"]
        if self.state == "to score":
            return (*start, "evaluate", str(self.folder), "--benchmark", benchmark, *where)
        changes = [part for key, value in self.changes.items() for part in ("--set", f"{key}={setting_text(value)}")]
        what = ["--benchmark", benchmark, "--method", self.row.method, "--seed", str(self.seed)]
        network = ["--network", self.benchmark.network]
        return (*start, "train", "--resume", "--out", str(self.folder), *what, *network, *changes, *where)


def configured(row: Row, scale: Scale, benchmark: Benchmark) -> tuple[Method, dict[str, Any]]:
    """The row's method as the table runs it, and what differs from the benchmark's settings."""
    kind, usual = method_class(row.method), benchmark.settings.get(row.method, {})
    changes: dict[str, Any] = {}
    if scale.share < 1:
        changes["steps"] = max(1, round(scale.share * kind(**usual).settings.steps))
    changes |= {**scale.settings.get(row.method, {}), **row.settings}
    return kind(**{**usual, **changes}), changes


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
    runs = []
    for seed in range(seeds):
        for row in {row.name: row for row in table.rows}.values():
            bench = benches[table.benchmark_of(row)]
            method, changes = configured(row, scale, bench.benchmark)
            folder = out / f"{row.name}-{seed}"
            if (folder / MANIFEST).exists():
                found: RunRecords | None = read_run(folder, unfinished=True)
            else:
                refuse_used_folder(folder)
                same = (run for run in others if difference(run.manifest, method, seed, bench) is None)
                found = next((run for run in same if _state(run, bench) == "done"), None)
            if found is None:
                runs.append(PlannedRun(row, seed, method, folder, "new", changes, bench.benchmark))
                continue
            differs = difference(found.manifest, method, seed, bench)
            if differs:
                raise UserError(str(folder), differs, "another --out, or remove that folder")
            state = _state(found, bench)
            runs.append(PlannedRun(row, seed, method, found.folder, state, changes, bench.benchmark, found))
    return runs


def difference(manifest: Manifest, method: Method, seed: int, bench: Bench) -> str | None:
    """What makes a run another one than that of a method, seed and benchmark; None if it is the same."""
    if manifest.adaptation is not None:
        return f"holds a run that was adapted to {manifest.adaptation.target}"
    facts: list[tuple[str, Any, Any]] = [
        ("method", manifest.method, method.name),
        ("seed", manifest.seed, seed),
        ("benchmark", manifest.benchmark, bench.benchmark.name),
        # One of the user's own has no name, and is the user's to answer for.
        ("network", manifest.network.name or bench.benchmark.network, bench.benchmark.network),
        ("source data", manifest.source.fingerprint, bench.source.fingerprint),
    ]
    if manifest.method == method.name:
        try:
            there = type(method)(**manifest.settings).settings.model_dump()  # what it did not know yet is as by default
        except UserError as error:
            return f"holds a run with settings of another version ({error})"
        wanted = method.settings.model_dump()
        facts += [(name, there[name], wanted[name]) for name in wanted]
    for name, is_there, is_wanted in facts:
        if is_there != is_wanted:
            return f"holds a run whose {name} is {is_there!r}, and here it is {is_wanted!r}"
    return None


def _state(run: RunRecords, bench: Bench) -> State:
    """A finished run is done when it was scored on every domain that there is, as it is now."""
    if not run.finished:
        return "going on"
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
