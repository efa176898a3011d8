"""What a run is to be adapted to, and what is there of its source: from a benchmark, or from the user's folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onedomain.benchmarks import BENCHMARKS, Benchmark, find_target
from onedomain.data import data_folder
from onedomain.data.domain import Domain
from onedomain.errors import UserError, unknown
from onedomain.runs.layout import MANIFEST
from onedomain.runs.manifest import read_manifest
from onedomain.training.own_folders import folder_for
from onedomain.training.run import Run


@dataclass(frozen=True)
class Target:
    """What is drawn from, and what is scored; None scores what was not drawn."""

    pool: Domain
    test: Domain | None
    benchmark: str | None


def find_adaptation_target(run: Run, text: str, test: str | None, data: str | None) -> Target:
    """A benchmark's target by its name, or the user's own images, as NAME=DIR or DIR."""
    name, equals, path = text.partition("=")
    benchmark = None if equals else find_target(text, _trained_on(run))
    if benchmark is not None:
        return _benchmark_target(run, benchmark, text, test, data)
    if not equals:
        name, path = Path(text).name, text
    if not (name and path):
        raise UserError("--target", f"got {text!r}", "NAME=DIR, such as --target night=images/night")
    if not equals and not Path(path).is_dir():
        names = {name for each in BENCHMARKS.values() for name in each.target_train}
        raise unknown("--target", text, [*names, "NAME=DIR"])
    scored = folder_for(run, test, name, "test") if test else None
    return Target(folder_for(run, path, name, "train"), scored, None)


def _benchmark_target(run: Run, benchmark: Benchmark, name: str, test: str | None, data: str | None) -> Target:
    if test:
        raise UserError("--test", f"given, while {name} has test images in {benchmark.name}", "no --test")
    if name not in benchmark.target_train:
        allowed = [*benchmark.target_train, "NAME=DIR with images of your own"]
        raise UserError("--target", f"{benchmark.name} has no training images of {name}", ", ".join(allowed))
    if benchmark.of_source:
        benchmark.refuse_trained_on(run.manifest.benchmark, f"--target {name} of {benchmark.name}")
    folder = data_folder(data)
    return Target(benchmark.target_train[name](folder), benchmark.targets[name](folder), benchmark.name)


def find_source(run: Run, folder: str | None, data: str | None, needed: bool) -> tuple[dict[str, Any], list[str]]:
    """What is there of the run's source, as options of `adapt`, and why the rest is not.

    `needed` says that the adaptation trains on the source again: that its images are missing is an error then.
    """
    trained = _trained_on(run)
    if trained is None:
        if folder is None and needed:
            given = "not given, and the run was trained on your own images"
            raise UserError("--source", given, "their folder: this method trains on them again")
        return {"source": folder_for(run, folder, "source", "train")} if folder else {}, []
    if folder:
        raise UserError("--source", f"given, while the run was trained on {trained.name}", "no --source")
    found: dict[str, Domain] = {}
    missing = []
    wanted = {"source": trained.train, "held_out": trained.held_out, "calibration": trained.calibration}
    for part, load in wanted.items():
        if load is None:
            continue
        try:
            domain = load(data_folder(data))
            if part == "source" and domain.fingerprint != run.manifest.source.fingerprint:
                raise UserError(f"domain '{domain.name}' ({domain.split})", "is not what the run was trained on")
            found[part] = domain
        except UserError as error:
            if needed and part == "source":
                raise
            missing.append(str(error))
    return found, list(dict.fromkeys(missing))


def earlier_settings(folder: Path, method: str) -> dict[str, Any]:
    """The settings of the adapted run in a folder, if there is one by this method: to resume it with the same."""
    info = read_manifest(folder).adaptation if (folder / MANIFEST).exists() else None
    return info.settings if info is not None and info.method == method else {}


def _trained_on(run: Run) -> Benchmark | None:
    return BENCHMARKS.get(run.manifest.benchmark or "")
