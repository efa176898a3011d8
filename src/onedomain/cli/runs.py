"""Commands that make, score and use runs; what they do is in `commands.py` and `adaptation/command.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from onedomain.cli.options import Assignments, BenchmarkName, Data, Device, Json, Resume, RunFolder, Steps, Threads
from onedomain.methods import method_names
from onedomain.methods.adapt import adaptation_names


def _target_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return sorted({name for benchmark in BENCHMARKS.values() for name in benchmark.target_train})


def _network_names() -> list[str]:
    from onedomain.networks import network_names

    return network_names()


def demo(
    out: Annotated[str, typer.Option("--out", help="Folder for the demo's runs.")] = "runs/demo",
    steps: Steps = None,
    threads: Threads = None,
) -> None:
    """Train on the embedded digits and score on four unseen domains: a few minutes, nothing to download."""
    from onedomain.cli import commands

    commands.demo(out, steps, threads)


def train(
    benchmark: BenchmarkName = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", autocompletion=method_names, help="See `methods`.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Decides everything random. [0]")] = None,
    steps: Steps = None,
    assignments: Assignments = None,
    out: Annotated[str | None, typer.Option("--out", help="Run folder. [runs/BENCHMARK-METHOD-SEED]")] = None,
    resume: Resume = False,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="DIR", help="Your own images instead: one sub-folder a class."),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="HxW", help="Bring the images of --source to this size.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", autocompletion=_network_names, help="Another network than the benchmark's."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="FILE", help="Start from weights: .safetensors, or .pth of tensors alone."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    score: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Score on the benchmark's domains afterwards.")
    ] = True,
    track: Annotated[
        str | None,
        typer.Option("--track", metavar="WITH", help="tensorboard: log scalars and images into the run folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Train a method on one domain, then score it on the unseen ones.

    Without options: ERM on digits-lite. Killed or stopped, --resume goes on and ends with the same weights.
    """
    from onedomain.cli import commands

    commands.train(
        benchmark=benchmark,
        method=method,
        seed=seed,
        steps=steps,
        assignments=assignments or [],
        out=out,
        resume=resume,
        source=source,
        size=size,
        network=network,
        weights=weights,
        data=data,
        device=device,
        threads=threads,
        score=score,
        track=track,
        json=json,
    )


def evaluate(
    run: RunFolder,
    benchmark: BenchmarkName = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="NAME=DIR", help="Score your own image folder; may be repeated."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Score a trained run on its benchmark's domains, on another benchmark's, or on your own folders."""
    from onedomain.cli import commands

    commands.evaluate(run, benchmark, on or [], data, device, threads, json)


def predict(
    run: RunFolder,
    images: Annotated[list[str], typer.Argument(metavar="IMAGE…", help="Image files.")],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Where masks and uncertainty maps go. [RUN/predictions]"),
    ] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Say for each image its label, the probability of it, and how uncertain that is.

    A run that labels pixels writes two pictures for each image: the mask, and how uncertain each pixel is.
    """
    from onedomain.cli import commands

    commands.predict(run, images, out, device, json)


def adapt(
    run: RunFolder,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="T",
            autocompletion=_target_names,
            help="A benchmark's target, or your own images: NAME=DIR, one sub-folder a class.",
        ),
    ],
    shots: Annotated[
        int, typer.Option("--shots", help="Images to draw of each class; in all, where pixels have labels.")
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", autocompletion=adaptation_names, help="fine-tune, or from scratch: fada, ccsa."),
    ] = "fine-tune",
    seeds: Annotated[int, typer.Option("--seeds", help="How many draws, each adapted by itself.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the first draw.")] = 0,
    steps: Steps = None,
    assignments: Assignments = None,
    out: Annotated[str | None, typer.Option("--out", help="Run folder. [RUN-TARGET-METHOD-SHOTS]")] = None,
    resume: Resume = False,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="DIR", help="Your own images to score; else those that were not drawn."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="DIR", help="The images that RUN was trained on, if they are your own."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Adapt a trained run to a new domain by a few labelled images of it; RUN stays as it is.

    Scores target and source before and after. Images to score are never drawn.
    """
    from onedomain.cli import adapt_command as command

    command.adapt_run(
        folder=run,
        target=target,
        shots=shots,
        method=method,
        seeds=seeds,
        seed=seed,
        steps=steps,
        assignments=assignments or [],
        out=out,
        resume=resume,
        test=test,
        source=source,
        data=data,
        device=device,
        threads=threads,
        json=json,
    )
