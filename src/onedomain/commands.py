"""What the commands do, between the command line and the library."""

from __future__ import annotations

import json as json_format
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain import tables
from onedomain.benchmarks import BENCHMARKS, Benchmark, find_benchmark
from onedomain.data import data_folder, prepare
from onedomain.data.own import decode_image, image_folder
from onedomain.errors import Interrupted, OnedomainError, UserError
from onedomain.evaluation import Evaluation
from onedomain.manifest import MANIFEST, read_manifest
from onedomain.methods import method_class, method_names
from onedomain.progress import work_in_parts
from onedomain.run import WEIGHTS, Run, fit, load
from onedomain.settings import parse_assignments

DEMO_BENCHMARK = "digits-lite"
DEMO_METHODS = ("erm",)


def demo(out: str, steps: int | None, threads: int | None) -> None:
    use_threads(threads)
    benchmark = find_benchmark(DEMO_BENCHMARK)
    data = Path()  # the embedded benchmark reads no data folder
    domains, _ = benchmark.load_for_scoring(data)
    tables.say(f"Train on {benchmark.source}, score on {len(benchmark.targets)} domains that training never sees.")
    evaluations: dict[str, Evaluation] = {}
    for name in DEMO_METHODS:
        folder = Path(out) / name
        overrides = {} if steps is None else {"steps": steps}
        method = method_class(name)(**{**benchmark.settings.get(name, {}), **overrides})
        if (folder / WEIGHTS).exists():
            tables.say(f"{name} is trained already; remove {folder} to train it again.")
        run = fit(
            method,
            benchmark.train(data),
            network=benchmark.network,
            out=folder,
            resume=True,
            benchmark=benchmark.name,
        )
        evaluations[name] = run.evaluate(domains, seen=[benchmark.source], progress=True)
        run.write_records(evaluations[name])
    tables.show_comparison(evaluations, benchmark.source)
    tables.say(f"The runs are in {out}. Next: onedomain predict {Path(out) / DEMO_METHODS[-1]} IMAGE.png")


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
    data: str | None,
    device: str | None,
    threads: int | None,
    score: bool,
    json: bool,
) -> None:
    use_threads(threads)
    if benchmark and source:
        raise UserError("--source", "given together with --benchmark", "one of them")
    if size and not source:
        raise UserError("--size", "given without --source", "with a folder of your own images")
    given: dict[str, Any] = parse_assignments(assignments)
    if steps is not None:
        given["steps"] = steps

    if resume and out is not None and (Path(out) / MANIFEST).exists():
        # What is not said again is as it was; what is said again is compared, and must be the same.
        before = read_manifest(Path(out))
        method = method or before.method
        seed = before.seed if seed is None else seed
        benchmark = benchmark if benchmark or source else before.benchmark
        given = {**before.settings, **given}
        if benchmark is None and source is None:
            raise UserError("--source", f"not given, and {out} was trained on your own images", "their folder")

    chosen = None if source else find_benchmark(benchmark or "digits-lite")
    method, seed = method or "erm", 0 if seed is None else seed
    configured = method_class(method)(**{**(chosen.settings.get(method, {}) if chosen else {}), **given})
    folder = Path(out or f"runs/{chosen.name if chosen else Path(str(source)).name}-{method}-{seed}")
    if chosen:
        domain = chosen.train(data_folder(data))
    else:
        domain = image_folder(str(source), name="source", split="train", size=parse_size(size))

    try:
        run = fit(
            configured,
            domain,
            network=chosen.network if chosen else None,
            seed=seed,
            device=device,
            out=folder,
            resume=resume,
            benchmark=chosen.name if chosen else None,
        )
    except Interrupted as stopped:
        raise Interrupted(f"{stopped}; go on with: onedomain train --resume --out {folder}") from None

    if chosen and score:
        evaluation, missing = score_on(run, chosen, data)
        report(run, evaluation, missing, json)
    elif json:
        print(json_format.dumps({"run": str(folder), "method": method, "seed": seed, "train_seconds": run.seconds}))
    tables.say(f"The run is in {folder}")


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
        height, width, channels = run.manifest.source["image_shape"]
        domains = {}
        for text in on:
            label, equals, path = text.partition("=")
            if not (label and equals and path):
                raise UserError("--on", f"got {text!r}", "NAME=DIR, such as --on night=images/night")
            domains[label] = image_folder(
                path, name=label, size=(height, width), channels=channels, classes=run.classes
            )
        evaluation = run.evaluate(domains, progress=True)
    elif name is None:
        raise UserError("--on", f"not given, and {folder} was trained on your own images", "NAME=DIR or --benchmark")
    else:
        evaluation, missing = score_on(run, find_benchmark(name), data)
    report(run, evaluation, missing, json)


def score_on(run: Run, benchmark: Benchmark, data: str | None) -> tuple[Evaluation, list[str]]:
    domains, missing = benchmark.load_for_scoring(data_folder(data))
    return run.evaluate(domains, seen=[benchmark.source], progress=True), missing


def report(run: Run, evaluation: Evaluation, missing: list[str], json: bool) -> None:
    run.write_records(evaluation)
    if json:
        print(json_format.dumps(tables.evaluation_as_json(run, evaluation, missing), indent=2))
        return
    tables.show_evaluation(run, evaluation)
    for reason in missing:
        tables.say(f"not scored: {reason}")


def predict(folder: str, images: list[str], device: str | None, json: bool) -> None:
    run = load(folder, device=device)
    height, width, channels = run.manifest.source["image_shape"]
    if run.manifest.source["dense"]:
        raise UserError(folder, "labels pixels, not images", "a run that classifies images")
    pixels = np.stack([decode_image(Path(file), (height, width), channels) for file in images])
    predictions = run.predict(pixels)
    if json:
        print(json_format.dumps({"predictions": tables.predictions_as_json(images, predictions)}, indent=2))
    else:
        tables.show_predictions(images, predictions)


def list_methods(json: bool) -> None:
    rows = []
    for name in method_names():
        kind = method_class(name)
        settings = {
            field: {"default": info.default, "what": info.description}
            for field, info in kind.Settings.model_fields.items()
        }
        rows.append({"name": name, "summary": kind.summary, "citation": kind.citation, "settings": settings})
    if json:
        print(json_format.dumps({"methods": rows}, indent=2))
    else:
        tables.show_methods(rows)


def list_benchmarks(json: bool) -> None:
    rows = [
        {
            "name": b.name,
            "summary": b.summary,
            "source": b.source,
            "targets": list(b.targets),
            "network": b.network,
        }
        for b in BENCHMARKS.values()
    ]
    if json:
        print(json_format.dumps({"benchmarks": rows}, indent=2))
    else:
        tables.show_benchmarks(rows)


def data_list(data: str | None, json: bool) -> None:
    folder = data_folder(data)
    tables.show_data(folder, prepare.list_data(folder), json)


def data_check(names: list[str], data: str | None, json: bool) -> None:
    folder = data_folder(data)
    rows = prepare.check_data(folder, names)
    tables.show_data(folder, rows, json)
    broken = [row.name for row in rows if row.state == "broken"]
    if broken:
        raise OnedomainError(f"broken: {', '.join(broken)}; remove the files and run onedomain data prepare NAME")


def data_prepare(name: str, data: str | None) -> None:
    with work_in_parts(f"prepare {name}") as tell:
        done = prepare.prepare(name, data_folder(data, to_write=True), tell)
    print(done)


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
