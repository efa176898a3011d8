"""`onedomain train`: train on one domain, then score on the unseen ones."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

if TYPE_CHECKING:
    from onedomain.evaluation.scores import Evaluation

GROUP = shared.TRAIN


@dataclass(frozen=True)
class Options:
    benchmark: str | None = shared.benchmark()
    method: str | None = shared.option("--method -m", "See `onedomain methods`. [erm]", complete="methods:method_names")
    seed: int | None = shared.option("--seed", "Decides everything random. [0]")
    recipe: str | None = shared.recipe()
    steps: int | None = shared.steps()
    assignments: list[str] | None = shared.assignments()
    network: str | None = shared.option(
        "--network", "Another network than the benchmark's.", complete="networks:network_names"
    )
    weights: str | None = shared.option(
        "--weights FILE", "Weights to start from: .safetensors, or .pth of tensors only."
    )
    source: str | None = shared.option(
        "--source DIR", "Train on these instead: one sub-folder per class.", group=shared.OWN_IMAGES
    )
    size: str | None = shared.option("--size HxW", "Bring them to this size.", group=shared.OWN_IMAGES)
    held_out: str | None = shared.option(
        "--held-out DIR",
        "More images of the same domain, not trained on but scored; by default 5% of 400 images or more.",
        group=shared.OWN_IMAGES,
    )
    objective: str | None = shared.option(
        "--objective WHAT",
        "Judge as `tune` does, by a part of the source: see docs/tune.md.",
        complete="training.objective:OBJECTIVES",
    )
    out: str | None = shared.option(
        "--out DIR", "Where the run is kept. [runs/BENCHMARK-METHOD-SEED]", group=shared.RUN_FOLDER
    )
    resume: bool = shared.resume()
    track: str | None = shared.option(
        "--track WITH", "tensorboard: log scalars and images into the run folder.", group=shared.RUN_FOLDER
    )
    data: str | None = shared.data()
    device: str | None = shared.device()
    threads: int | None = shared.threads()
    score: bool = shared.option("--evaluate/--no-evaluate", "Score afterwards.", group=shared.OUTPUT, default=True)
    json: bool = shared.json()


def train(options: Options) -> None:
    """Train a method on one domain, then score it on the unseen ones, or on held-out images of --source.

    Without options: ERM on digits-lite. Killed or stopped, it goes on with --resume and ends with the same weights.
    """
    from onedomain.training.distributed import joined

    with joined(options.device):
        _train(options)


def _train(options: Options) -> None:
    from onedomain.benchmarks.protocol.request import TrainingRequest, score_on
    from onedomain.cli.evaluate import show_and_keep
    from onedomain.data import data_folder
    from onedomain.data.progress import say
    from onedomain.errors import Interrupted
    from onedomain.networks.distributed import place, processes
    from onedomain.runs.commandline import launched
    from onedomain.runs.layout import MANIFEST
    from onedomain.settings import given_settings
    from onedomain.training.tracking import check_tracker

    shared.use_threads(options.threads)
    check_tracker(options.track, has_folder=True)
    request = TrainingRequest(
        benchmark=options.benchmark,
        source=options.source,
        size=options.size,
        held_out=options.held_out,
        method=options.method,
        seed=options.seed,
        network=options.network,
        recipe=options.recipe,
        objective=options.objective,
        settings=given_settings(options.assignments or [], options.steps),
    )
    folder = Path(options.out or request.folder)
    if options.resume and (folder / MANIFEST).exists():
        request = request.completed_from(folder)
    elif options.resume:
        say(f"nothing to resume in {folder}: training from the start")
    how: dict[str, Any] = {"weights": options.weights, "device": options.device, "track": options.track}
    how |= {"out": folder, "resume": options.resume}
    evaluation: Evaluation | None = None
    try:
        if request.objective:
            run, evaluation = request.train_and_judge(options.data, **how)
        else:
            run = request.train(options.data, score=options.score, **how)
    except Interrupted as stopped:
        again = ["onedomain", "train", "--resume", "--out", str(folder)]
        again += shared.as_typed(options, "source", "held-out", "track", "data", "device", "threads")
        command = launched(shlex.join(again), processes())
        raise Interrupted(f"{stopped}; go on with: {command}", stopped.exit_code) from None
    benchmark = None if request.objective else request.find_benchmark()
    if benchmark and options.score:
        evaluation = score_on(run, benchmark, data_folder(options.data))
    elif options.score and run.held_out and not request.objective:
        at_home = run.manifest.source.name
        evaluation = run.evaluate({at_home: run.held_out}, seen=[at_home])
    if place() > 0:
        return
    if evaluation:
        show_and_keep(run, evaluation, benchmark, options.json)
    elif options.json:
        told = {"run": str(folder), "method": run.manifest.method, "seed": run.manifest.seed}
        print_json({**told, "train_seconds": run.seconds})
    if options.source and not run.held_out:
        say("note: none of so few images was held out, and none is scored; --held-out DIR takes more of them")
    say(f"The run is in {folder}")
