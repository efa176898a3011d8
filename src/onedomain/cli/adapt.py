"""`onedomain adapt`: adapt a trained run to a new domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from onedomain.cli import options as shared
from onedomain.data.progress import say

if TYPE_CHECKING:
    from onedomain.training.adapted import Adapted
    from onedomain.training.run import Run

GROUP = shared.USE


def _adaptation_names() -> list[str]:
    from onedomain.methods.adapt import adaptation_names

    return adaptation_names()


def _target_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return sorted({name for benchmark in BENCHMARKS.values() for name in benchmark.target_train})


@dataclass(frozen=True)
class Options:
    run: shared.RunFolder
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="T",
            autocompletion=_target_names,
            help="A benchmark's target, or your own images: NAME=DIR, one sub-folder per class.",
        ),
    ]
    shots: Annotated[int, typer.Option("--shots", help="Images to draw per class; for segmentation, in all.")]
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", autocompletion=_adaptation_names, help="fine-tune, or from scratch: fada, ccsa."
        ),
    ] = "fine-tune"
    seeds: Annotated[int, typer.Option("--seeds", help="How many draws, each adapted by itself.")] = 1
    seed: Annotated[int, typer.Option("--seed", help="Of the first draw.")] = 0
    steps: shared.Steps = None
    assignments: shared.Assignments = None
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="DIR",
            rich_help_panel="Your own images",
            help="What is scored; by default the images that were not drawn.",
        ),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="DIR",
            rich_help_panel="Your own images",
            help="What RUN was trained on, if that was your own.",
        ),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR",
            rich_help_panel=shared.RUN_FOLDER,
            help="Where the adapted run is kept. [RUN-TARGET-METHOD-SHOTS]",
        ),
    ] = None
    resume: shared.Resume = False
    data: shared.Data = None
    device: shared.Device = None
    threads: shared.Threads = None
    json: shared.Json = False


def adapt(options: Options) -> None:
    """Adapt a trained run to a new domain by a few labelled images of it; RUN stays as it is.

    Scores target and source before and after. Images to score are never drawn.
    """
    import shlex
    from pathlib import Path

    from onedomain.benchmarks.adapting import earlier_settings, find_adaptation_target, find_source
    from onedomain.errors import Interrupted
    from onedomain.methods.adapt import adaptation_class
    from onedomain.settings import given_settings
    from onedomain.training import adapt as library
    from onedomain.training.fit import load

    shared.use_threads(options.threads)
    given = given_settings(options.assignments or [], options.steps)
    run = load(options.run, device=options.device)
    target = find_adaptation_target(run, options.target, options.test, options.data)
    out = options.out or f"{Path(options.run)}-{target.pool.name}-{options.method}-{options.shots}"
    if options.resume:  # what is not said again is as it was
        given = {**earlier_settings(library.draw_folder(out, options.seed, options.seeds), options.method), **given}
    method = adaptation_class(options.method)(**given)
    known = find_source(run, options.source, options.data, needed=method.from_scratch)
    try:
        adapted = library.adapt(
            run,
            target.pool,
            options.shots,
            method=method,
            test=target.test,
            source=known.source,
            held_out=known.held_out,
            calibration=known.calibration,
            benchmark=target.benchmark,
            seed=options.seed,
            seeds=options.seeds,
            out=out,
            resume=options.resume,
        )
    except Interrupted as stopped:
        again = ["onedomain", "adapt", options.run]
        again += shared.as_typed(options, "target", "shots", "method", "seeds", "seed")
        again += ["--out", out, "--resume"]
        again += shared.as_typed(options, "test", "source", "data", "device", "threads")
        raise Interrupted(f"{stopped}; go on with: {shlex.join(again)}") from None
    _show(run, adapted, known.missing, options.json)
    several = options.seeds > 1
    say(f"The adapted {'runs are' if several else 'run is'} in {out}{'/draw-…' if several else ''}")


def _show(run: Run, adapted: Adapted, missing: Sequence[str], as_json: bool) -> None:
    import json

    from onedomain.cli import tables

    if as_json:
        told = {"parent_method": run.manifest.method, **adapted.summary(), "missing": list(missing)}
        print(json.dumps(told, indent=2))
    else:
        tables.show_adapted(run, adapted)
    for note in [*adapted.notes, *(f"not at hand: {reason}" for reason in missing)]:
        say(note)
