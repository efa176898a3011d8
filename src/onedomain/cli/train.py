"""`onedomain train`: train on one domain, then score on the unseen ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from onedomain.cli import options as shared

GROUP = shared.TRAIN
OWN_IMAGES = "Your own images"


def _method_names() -> list[str]:
    from onedomain.methods import method_names

    return method_names()


def _network_names() -> list[str]:
    from onedomain.networks.named import NETWORKS

    return list(NETWORKS)


@dataclass(frozen=True)
class Options:
    benchmark: shared.BenchmarkName = None
    method: Annotated[
        str | None, typer.Option("--method", "-m", autocompletion=_method_names, help="See `onedomain methods`. [erm]")
    ] = None
    seed: Annotated[int | None, typer.Option("--seed", help="Decides everything random. [0]")] = None
    steps: shared.Steps = None
    assignments: shared.Assignments = None
    network: Annotated[
        str | None,
        typer.Option("--network", autocompletion=_network_names, help="Another network than the benchmark's."),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="FILE", help="Weights to start from: .safetensors, or .pth of tensors only."),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="DIR",
            rich_help_panel=OWN_IMAGES,
            help="Train on these instead: one sub-folder per class.",
        ),
    ] = None
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="HxW", rich_help_panel=OWN_IMAGES, help="Bring them to this size."),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR",
            rich_help_panel=shared.RUN_FOLDER,
            help="Where the run is kept. [runs/BENCHMARK-METHOD-SEED]",
        ),
    ] = None
    resume: shared.Resume = False
    track: Annotated[
        str | None,
        typer.Option(
            "--track",
            metavar="WITH",
            rich_help_panel=shared.RUN_FOLDER,
            help="tensorboard: log scalars and images into the run folder.",
        ),
    ] = None
    data: shared.Data = None
    device: shared.Device = None
    threads: shared.Threads = None
    score: Annotated[
        bool,
        typer.Option(
            "--evaluate/--no-evaluate",
            rich_help_panel=shared.OUTPUT,
            help="Score on the benchmark's domains afterwards.",
        ),
    ] = True
    json: shared.Json = False


def train(options: Options) -> None:
    """Train a method on one domain, then score it on the unseen ones.

    Without options: ERM on digits-lite. Killed or stopped, it goes on with --resume and ends with the same weights.
    """
    import json
    import shlex
    from pathlib import Path

    from onedomain.benchmarks.request import TrainingRequest
    from onedomain.benchmarks.scoring import score_on
    from onedomain.cli.evaluate import show_and_keep
    from onedomain.data import data_folder
    from onedomain.data.progress import say
    from onedomain.errors import Interrupted
    from onedomain.runs.layout import MANIFEST
    from onedomain.settings import given_settings
    from onedomain.training.tracking import check_tracker

    shared.use_threads(options.threads)
    check_tracker(options.track, has_folder=True)
    request = TrainingRequest(
        benchmark=options.benchmark,
        source=options.source,
        size=options.size,
        method=options.method,
        seed=options.seed,
        network=options.network,
        settings=given_settings(options.assignments or [], options.steps),
    )
    folder = Path(options.out or request.folder)
    if options.resume and (folder / MANIFEST).exists():
        request = request.completed_from(folder)
    elif options.resume:
        say(f"nothing to resume in {folder}: training from the start")
    try:
        run = request.train(
            options.data,
            score=options.score,
            weights=options.weights,
            device=options.device,
            out=folder,
            resume=options.resume,
            track=options.track,
        )
    except Interrupted as stopped:
        again = ["onedomain", "train", "--resume", "--out", str(folder)]
        again += shared.as_typed(options, "source", "track", "data", "device", "threads")
        raise Interrupted(f"{stopped}; go on with: {shlex.join(again)}") from None
    benchmark = request.find_benchmark()
    if benchmark and options.score:
        show_and_keep(run, score_on(run, benchmark, data_folder(options.data)), benchmark, options.json)
    elif options.json:
        told = {"run": str(folder), "method": run.manifest.method, "seed": run.manifest.seed}
        print(json.dumps({**told, "train_seconds": run.seconds}))
    say(f"The run is in {folder}")
