"""What `demo`, `train`, `evaluate` and `predict` do, between the command line and the library."""

from __future__ import annotations

import json as json_format
import math
import re
import shlex
from pathlib import Path

import numpy as np
import torch

from onedomain.benchmarks import BENCHMARKS, Benchmark, find_benchmark
from onedomain.cli import corruption_tables, tables
from onedomain.data import data_folder
from onedomain.data.domain import Domain
from onedomain.data.frames import frame_folder
from onedomain.data.image_files import decode_image
from onedomain.data.own import image_folder
from onedomain.data.progress import say
from onedomain.errors import Interrupted, UserError
from onedomain.evaluation import masks
from onedomain.evaluation.scores import Evaluation
from onedomain.methods import method_class
from onedomain.runs.commandline import resume_command
from onedomain.runs.layout import MANIFEST, WEIGHTS
from onedomain.runs.manifest import read_manifest
from onedomain.settings import given_settings
from onedomain.training.fit import fit, load
from onedomain.training.mask_files import predict_to_files
from onedomain.training.run import Run
from onedomain.training.tracking import check_tracker

DEMO_BENCHMARK = "digits-lite"
DEMO_METHODS = ("erm", "sdg", "uncertain-sdg")
DEMO_REPORT = "report.html"


def demo(out: str, steps: int | None, threads: int | None) -> None:
    use_threads(threads)
    benchmark = find_benchmark(DEMO_BENCHMARK)
    data = Path()  # the embedded benchmark reads no data folder
    domains, _ = benchmark.load_for_scoring(data)
    say(f"Train on {benchmark.source}, score on {len(benchmark.targets)} domains that training never sees.")
    evaluations: dict[str, Evaluation] = {}
    for name in DEMO_METHODS:
        folder = Path(out) / name
        overrides = {} if steps is None else {"steps": steps}
        method = method_class(name)(**{**benchmark.settings.get(name, {}), **overrides})
        if (folder / WEIGHTS).exists():
            say(f"{name} is trained already; remove {folder} to train it again.")
        run = fit(
            method,
            benchmark.train(data),
            network=benchmark.network,
            out=folder,
            resume=True,
            benchmark=benchmark.name,
            recipe=benchmark.settings.get(name),
            held_out=benchmark.calibration(data),
        )
        evaluations[name] = run.evaluate(domains, seen=[benchmark.source], progress=True)
        run.write_records(evaluations[name], benchmark.name)
    tables.show_comparison(evaluations, benchmark.source)
    from onedomain.reporting.page.page import write_report

    page = write_report([Path(out) / name for name in DEMO_METHODS], Path(out) / DEMO_REPORT)
    say(f"The runs are in {out}. Next: onedomain predict {Path(out) / DEMO_METHODS[-1]} IMAGE.png")
    say(f"The report is in {page}: open it in a browser.")


def train(
    *,
    benchmark: str | None,
    method: str | None,
    seed: int | None,
    steps: int | None,
    assignments: list[str],
    out: str | None,
    resume: bool,
    source: str | None,
    size: str | None,
    network: str | None,
    weights: str | None,
    data: str | None,
    device: str | None,
    threads: int | None,
    score: bool,
    track: str | None,
    json: bool,
) -> None:
    use_threads(threads)
    check_tracker(track, has_folder=True)
    if benchmark and source:
        raise UserError("--source", "given together with --benchmark", "one of them")
    if source and all((Path(source) / part).is_dir() for part in ("images", "labels")):
        found = "holds images/ and labels/, frames with masks, of which the classes are not known"
        raise UserError("--source", found, "from Python: od.fit(method, od.frame_folder(DIR, classes=…, size=…))")
    if size and not source:
        raise UserError("--size", "given without --source", "with a folder of your own images")
    given = given_settings(assignments, steps)

    folder = Path(out or default_folder(benchmark, method, seed, source))
    if resume and not (folder / MANIFEST).exists():
        say(f"nothing to resume in {folder}: training from the start")
    elif resume:
        # What is not said again is as it was; what is said again is compared, and must be the same.
        before = read_manifest(folder)
        if before.adaptation is not None:
            raise UserError("--out", f"{folder} holds an adapted run", resume_command(before, folder))
        method = method or before.method
        seed = before.seed if seed is None else seed
        network = network or before.network.name
        benchmark = benchmark if benchmark or source else before.benchmark
        given = {**before.settings, **given}
        if benchmark is None and source is None:
            raise UserError("--source", f"not given, and {folder} was trained on your own images", "their folder")
        if source and size is None:
            size = "x".join(map(str, before.source.image_shape[:2]))

    chosen = None if source else find_benchmark(benchmark or DEMO_BENCHMARK)
    method, seed = method or "erm", 0 if seed is None else seed
    configured = method_class(method)(**{**(chosen.settings.get(method, {}) if chosen else {}), **given})
    if chosen:
        domain = chosen.train(data_folder(data))
        if score:  # what is wrong with the data to score on is better known before hours of training
            chosen.load_for_scoring(data_folder(data))
    else:
        domain = image_folder(str(source), name="source", split="train", size=parse_size(size))

    try:
        run = fit(
            configured,
            domain,
            network=network or (chosen.network if chosen else None),
            weights=weights,
            seed=seed,
            device=device,
            out=folder,
            resume=resume,
            benchmark=chosen.name if chosen else None,
            recipe=chosen.settings.get(method) if chosen else None,
            held_out=chosen.calibration(data_folder(data)) if chosen else None,
            track=track,
        )
    except Interrupted as stopped:
        again = ["onedomain", "train", "--resume", "--out", str(folder)]
        again += as_typed(source=source, track=track, data=data, device=device, threads=threads)
        raise Interrupted(f"{stopped}; go on with: {shlex.join(again)}") from None

    if chosen and score:
        evaluation, missing = score_on(run, chosen, data)
        show_and_keep(run, evaluation, chosen.name, missing, json)
    elif json:
        print(json_format.dumps({"run": str(folder), "method": method, "seed": seed, "train_seconds": run.seconds}))
    say(f"The run is in {folder}")


def evaluate(
    folder: str,
    benchmark: str | None,
    on: list[str],
    data: str | None,
    device: str | None,
    threads: int | None,
    json: bool,
) -> None:
    use_threads(threads)
    run = load(folder, device=device)
    if on and benchmark:
        raise UserError("--on", "given together with --benchmark", "one of them")
    name = benchmark or run.manifest.benchmark
    missing: list[str] = []
    if on:
        domains = {}
        for text in on:
            label, equals, path = text.partition("=")
            if not (label and equals and path):
                raise UserError("--on", f"got {text!r}", "NAME=DIR, such as --on night=images/night")
            if label in domains:
                raise UserError("--on", f"{label!r} is given twice", "each name once")
            domains[label] = own_folder(run, path, label, "all")
        evaluation = run.evaluate(domains, progress=True)
    elif name is None:
        raise UserError("--on", f"not given, and {folder} was trained on your own images", "NAME=DIR or --benchmark")
    else:
        evaluation, missing = score_on(run, find_benchmark(name), data)
    show_and_keep(run, evaluation, None if on else name, missing, json)


def own_folder(run: Run, path: str, name: str, split: str) -> Domain:
    """A user's folder in the form in which a run takes images: a sub-folder a class, or frames and their masks."""
    source = run.manifest.source
    height, width, channels = source.image_shape
    if source.dense:
        return frame_folder(
            path,
            classes=run.classes,
            size=(height, width),
            void=source.void,
            name=name,
            split=split,
            channels=channels,
        )
    return image_folder(path, name=name, split=split, size=(height, width), channels=channels, classes=run.classes)


def score_on(run: Run, benchmark: Benchmark, data: str | None) -> tuple[Evaluation, list[str]]:
    benchmark.refuse_trained_on(run.manifest.benchmark, f"--benchmark {benchmark.name}")
    domains, missing = benchmark.load_for_scoring(data_folder(data))
    trained = BENCHMARKS.get(run.manifest.benchmark or "")
    same_source = trained is not None and trained.train is benchmark.train
    # A target that the run was trained on, or adapted to, is not unseen, whatever its images are.
    known = [trained.source] if trained is not None else []
    known += [info.target for info in run.manifest.adaptations if info.benchmark is not None]
    seen = [benchmark.source] if same_source else []
    seen += [name for name in benchmark.targets if name in known]
    evaluation = run.evaluate(domains, seen=seen, progress=True, keep_going=True)
    return evaluation, [*missing, *evaluation.missing]


def show_and_keep(run: Run, evaluation: Evaluation, benchmark: str | None, missing: list[str], json: bool) -> None:
    """Show the scores, then keep them: a folder that cannot be written to does not hide them."""
    scored_on = None if benchmark is None else find_benchmark(benchmark)
    measured = corruption_tables.measured(run, evaluation, scored_on) if scored_on and scored_on.corruptions else None
    if json:
        document = tables.evaluation_as_json(run, evaluation, benchmark, missing)
        if measured:
            document["robustness"] = corruption_tables.as_json(measured)
        print(json_format.dumps(document, indent=2))
    elif measured:
        corruption_tables.show_corruptions(run, evaluation, measured)
    else:
        tables.show_evaluation(run, evaluation)
    tables.say_if_not_held_out(run)
    for reason in missing:
        say(f"not scored: {reason}")
    run.write_records(evaluation, benchmark)


def predict(folder: str, images: list[str], out: str | None, device: str | None, json: bool) -> None:
    run = load(folder, device=device)
    if run.manifest.source.dense:
        rows = predict_to_files(run, images, Path(out) if out else Path(folder) / "predictions")
        if json:
            colours = dict(zip(run.classes, masks.palette(run.classes).tolist(), strict=True))
            scale = {"colours": colours, "uncertainty_of_white": math.log(len(run.classes))}
            document = {"predictions": rows, **scale, "calibration": tables.calibration_as_json(run)}
            print(json_format.dumps(document, indent=2))
        else:
            tables.show_masks(rows)
            tables.say_if_not_held_out(run)
        return
    if out:
        raise UserError("--out", f"given, and {folder} labels images, not pixels", "a run that labels pixels")
    height, width, channels = run.manifest.source.image_shape
    pixels = np.stack([decode_image(Path(file), (height, width), channels) for file in images])
    predictions = run.predict(pixels)
    if json:
        rows = tables.predictions_as_json(images, predictions)
        print(json_format.dumps({"predictions": rows, "calibration": tables.calibration_as_json(run)}, indent=2))
    else:
        tables.show_predictions(images, predictions)
        tables.say_if_not_held_out(run)


def default_folder(benchmark: str | None, method: str | None, seed: int | None, source: str | None) -> str:
    data = Path(source).resolve().name if source else benchmark or DEMO_BENCHMARK
    return f"runs/{data}-{method or 'erm'}-{seed or 0}"


def as_typed(**options: object) -> list[str]:
    """The options that were given, to be typed again: on another device, or more threads, the last bits may differ."""
    return [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]


def use_threads(threads: int | None) -> None:
    if threads is not None:
        if threads < 1:
            raise UserError("--threads", f"got {threads}", "a whole number from 1")
        torch.set_num_threads(threads)


def parse_size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d*)[x×]([1-9]\d*)", text)
    if not found:
        raise UserError("--size", f"got {text!r}", "HEIGHTxWIDTH, such as 32x32")
    return int(found[1]), int(found[2])
