"""What `onedomain adapt` does, between the command line and the library."""

from __future__ import annotations

import json as json_format
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onedomain.benchmarks import BENCHMARKS, Benchmark, find_target
from onedomain.cli import tables
from onedomain.cli.commands import as_typed, own_folder, use_threads
from onedomain.data import data_folder
from onedomain.data.domain import Domain
from onedomain.data.own import image_folder
from onedomain.data.progress import say
from onedomain.errors import Interrupted, UserError, unknown
from onedomain.methods.adapt import adaptation_class
from onedomain.runs.layout import MANIFEST
from onedomain.runs.manifest import read_manifest
from onedomain.settings import given_settings
from onedomain.training.adapt import adapt, draw_folder
from onedomain.training.fit import load
from onedomain.training.run import Run


@dataclass(frozen=True)
class Target:
    """What is drawn from, and what is scored; None scores what was not drawn."""

    pool: Domain
    test: Domain | None
    benchmark: str | None


def adapt_run(
    *,
    folder: str,
    target: str,
    shots: int,
    method: str,
    seeds: int,
    seed: int,
    steps: int | None,
    assignments: list[str],
    out: str | None,
    resume: bool,
    test: str | None,
    source: str | None,
    data: str | None,
    device: str | None,
    threads: int | None,
    json: bool,
) -> None:
    use_threads(threads)
    given = given_settings(assignments, steps)
    run = load(folder, device=device)
    trained = BENCHMARKS.get(run.manifest.benchmark or "")
    chosen = _target(run, trained, target, test, data)
    kept = out or f"{Path(folder)}-{chosen.pool.name}-{method}-{shots}"
    if resume:  # what is not said again is as it was
        given = {**_earlier_settings(draw_folder(kept, seed, seeds), method), **given}
    configured = adaptation_class(method)(**given)
    known, missing = _source(run, trained, source, data, needed=configured.from_scratch)
    try:
        adapted = adapt(
            run,
            chosen.pool,
            shots,
            method=configured,
            test=chosen.test,
            benchmark=chosen.benchmark,
            seed=seed,
            seeds=seeds,
            out=kept,
            resume=resume,
            **known,
        )
    except Interrupted as stopped:
        words = ["onedomain", "adapt", folder, "--target", target, "--shots", str(shots), "--method", method]
        words += ["--seeds", str(seeds), "--seed", str(seed), "--out", kept, "--resume"]
        words += as_typed(test=test, source=source, data=data, device=device, threads=threads)
        raise Interrupted(f"{stopped}; go on with: {shlex.join(words)}") from None
    if json:
        told = {"parent_method": run.manifest.method, **adapted.summary(), "missing": missing}
        print(json_format.dumps(told, indent=2))
    else:
        tables.show_adapted(run, adapted)
    for note in [*adapted.notes, *(f"not at hand: {reason}" for reason in missing)]:
        say(note)
    say(f"The adapted {'run is' if seeds == 1 else 'runs are'} in {kept}{'' if seeds == 1 else '/draw-…'}")


def _earlier_settings(folder: Path, method: str) -> dict[str, Any]:
    info = read_manifest(folder).adaptation if (folder / MANIFEST).exists() else None
    return info.settings if info is not None and info.method == method else {}


def _target(run: Run, trained: Benchmark | None, text: str, test: str | None, data: str | None) -> Target:
    """A benchmark's target by its name, or the user's own images, as NAME=DIR or DIR."""
    label, equals, path = text.partition("=")
    benchmark = None if equals else find_target(text, trained)
    if benchmark is not None:
        if test:
            raise UserError("--test", f"given, while {text} has test images in {benchmark.name}", "no --test")
        if text not in benchmark.target_train:
            allowed = [*benchmark.target_train, "NAME=DIR with images of your own"]
            raise UserError("--target", f"{benchmark.name} has no training images of {text}", ", ".join(allowed))
        if benchmark.of_source:
            benchmark.refuse_trained_on(run.manifest.benchmark, f"--target {text} of {benchmark.name}")
        folder = data_folder(data)
        return Target(benchmark.target_train[text](folder), benchmark.targets[text](folder), benchmark.name)
    if not equals:
        label, path = Path(text).name, text
    if not (label and path):
        raise UserError("--target", f"got {text!r}", "NAME=DIR, such as --target night=images/night")
    if not equals and not Path(path).is_dir():
        names = {name for each in BENCHMARKS.values() for name in each.target_train}
        raise unknown("--target", text, [*names, "NAME=DIR"])
    scored = own_folder(run, test, label, "test") if test else None
    return Target(own_folder(run, path, label, "train"), scored, None)


def _source(
    run: Run, trained: Benchmark | None, source: str | None, data: str | None, needed: bool
) -> tuple[dict[str, Any], list[str]]:
    """What is at hand of the source, as options of `adapt`, and why the rest is not."""
    if trained is None:
        if source is None and needed:
            given = "not given, and the run was trained on your own images"
            raise UserError("--source", given, "their folder: this method trains on them again")
        return {"source": _own_source(run, source) if source else None}, []
    if source:
        raise UserError("--source", f"given, while the run was trained on {trained.name}", "no --source")
    wanted = {"source": trained.train, "held_out": trained.held_out, "calibration": trained.calibration}
    found: dict[str, Any] = {}
    missing = []
    for name, read in wanted.items():
        if read is None:
            continue
        try:
            domain = read(data_folder(data))
            if name == "source" and domain.fingerprint != run.manifest.source.fingerprint:
                raise UserError(f"domain '{domain.name}' ({domain.split})", "is not what the run was trained on")
            found[name] = domain
        except UserError as error:
            if needed and name == "source":
                raise
            missing.append(str(error))
    return found, list(dict.fromkeys(missing))


def _own_source(run: Run, path: str) -> Domain:
    height, width, channels = run.manifest.source.image_shape
    return image_folder(path, name="source", split="train", size=(height, width), channels=channels)
