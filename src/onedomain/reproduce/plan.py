"""From a table to its runs: which there are, which are done, and what the others need."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    def load(cls, benchmark: Benchmark, data: Path) -> Bench:
        """Everything that the runs will read: what is wrong with it is told before anything is started."""
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
    records: RunRecords | None = None

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.seed}"

    @property
    def steps_done(self) -> int:
        return max((row["step"] for row in self.records.metrics), default=0) if self.records else 0

    def command(self, benchmark: str, data: str | None, device: str | None) -> tuple[str, ...]:
        """What brings the run to its end from where it is."""
        where = [*(["--data", data] if data else []), *(["--device", device] if device else []), "--threads", "1"]
        start = [sys.executable, "-m", "onedomain"]
        if self.state == "to score":
            return (*start, "evaluate", str(self.folder), "--benchmark", benchmark, *where)
        what = what_to_train(benchmark, self.row, self.seed, self.changes)
        return (*start, "train", "--resume", "--out", str(self.folder), *what, *where)


def what_to_train(benchmark: str, row: Row, seed: int, changes: Mapping[str, Any]) -> list[str]:
    """The options of `onedomain train` that make a run what it is."""
    changed = [part for key, value in changes.items() for part in ("--set", f"{key}={setting_text(value)}")]
    return ["--benchmark", benchmark, "--method", row.method, "--seed", str(seed), *changed]


def configured(row: Row, scale: Scale, benchmark: Benchmark) -> tuple[Method, dict[str, Any]]:
    """The row's method as the table runs it, and what differs from the benchmark's settings."""
    kind, usual = method_class(row.method), benchmark.settings.get(row.method, {})
    changes: dict[str, Any] = {}
    if scale.share < 1:
        changes["steps"] = max(1, round(scale.share * kind(**usual).settings.steps))
    changes |= {**scale.settings.get(row.method, {}), **row.settings}
    return kind(**{**usual, **changes}), changes


def plan(
    table: Table, scale: Scale, seeds: int, out: Path, bench: Bench, elsewhere: Sequence[str] = ()
) -> list[PlannedRun]:
    """The runs of a table, seed by seed; finished ones with the same settings may lie `elsewhere`."""
    others = [read_run(folder, unfinished=True) for folder in _run_folders(elsewhere)]
    runs = []
    for seed in range(seeds):
        for row in {row.key: row for row in table.rows}.values():
            method, changes = configured(row, scale, bench.benchmark)
            folder = out / f"{row.name}-{seed}"
            if (folder / MANIFEST).exists():
                found: RunRecords | None = read_run(folder, unfinished=True)
            else:
                refuse_used_folder(folder)
                same = (run for run in others if difference(run.manifest, method, seed, bench) is None)
                found = next((run for run in same if _state(run, bench) == "done"), None)
            if found is None:
                runs.append(PlannedRun(row, seed, method, folder, "new", changes))
                continue
            differs = difference(found.manifest, method, seed, bench)
            if differs:
                raise UserError(str(folder), differs, "another --out, or remove that folder")
            runs.append(PlannedRun(row, seed, method, found.folder, _state(found, bench), changes, found))
    return runs


def difference(manifest: Manifest, method: Method, seed: int, bench: Bench) -> str | None:
    """What makes a run another one than that of a method, seed and benchmark; None if it is the same."""
    if manifest.adaptation is not None:
        return f"holds a run that was adapted to {manifest.adaptation.target}"
    facts: list[tuple[str, Any, Any]] = [
        ("method", manifest.method, method.name),
        ("seed", manifest.seed, seed),
        ("benchmark", manifest.benchmark, bench.benchmark.name),
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
