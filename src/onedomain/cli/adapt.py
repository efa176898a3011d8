"""`onedomain adapt`: adapt a trained run to a new domain."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

GROUP = shared.USE


def _target_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return sorted({name for benchmark in BENCHMARKS.values() for name in benchmark.target_train})


@dataclass(frozen=True)
class Options:
    run: str = shared.run_folder()
    target: str = shared.option(
        "--target T",
        "A benchmark's target, or your own images: NAME=DIR, one sub-folder per class.",
        complete=_target_names,
        default=shared.REQUIRED,
    )
    shots: int = shared.option(
        "--shots", "Images to draw per class; for segmentation, in all.", default=shared.REQUIRED
    )
    method: str = shared.option(
        "--method -m",
        "fine-tune, or from scratch: fada, ccsa.",
        complete="methods.adapt:adaptation_names",
        default="fine-tune",
    )
    seeds: int = shared.option("--seeds", "How many draws, each adapted by itself.", default=1)
    seed: int = shared.option("--seed", "Of the first draw.", default=0)
    steps: int | None = shared.steps()
    assignments: list[str] | None = shared.assignments()
    test: str | None = shared.option(
        "--test DIR", "What is scored; by default the images that were not drawn.", group=shared.OWN_IMAGES
    )
    source: str | None = shared.option(
        "--source DIR", "What RUN was trained on, if that was your own.", group=shared.OWN_IMAGES
    )
    out: str | None = shared.option(
        "--out DIR", "Where the adapted run is kept. [RUN-TARGET-METHOD-SHOTS]", group=shared.RUN_FOLDER
    )
    resume: bool = shared.resume()
    data: str | None = shared.data()
    device: str | None = shared.device()
    threads: int | None = shared.threads()
    json: bool = shared.json()


def adapt(options: Options) -> None:
    """Adapt a trained run to a new domain by a few labelled images of it; RUN stays as it is.

    Scores target and source before and after. Images to score are never drawn.
    """
    from onedomain.benchmarks.protocol.adapting import earlier_settings, find_adaptation_target, find_source
    from onedomain.cli import tables
    from onedomain.data.progress import say
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
    known, missing = find_source(run, options.source, options.data, needed=method.from_scratch)
    try:
        adapted = library.adapt(
            run,
            target.pool,
            options.shots,
            method=method,
            test=target.test,
            benchmark=target.benchmark,
            seed=options.seed,
            seeds=options.seeds,
            out=out,
            resume=options.resume,
            **known,
        )
    except Interrupted as stopped:
        again = ["onedomain", "adapt", options.run]
        again += shared.as_typed(options, "target", "shots", "method", "seeds", "seed")
        again += ["--out", out, "--resume"]
        again += shared.as_typed(options, "test", "source", "data", "device", "threads")
        raise Interrupted(f"{stopped}; go on with: {shlex.join(again)}", stopped.exit_code) from None
    if options.json:
        print_json({"parent_method": run.manifest.method, **adapted.summary(), "missing": missing})
    else:
        tables.show_adapted(run, adapted)
    for note in [*adapted.notes, *(f"not at hand: {reason}" for reason in missing)]:
        say(note)
    several = options.seeds > 1
    say(f"The adapted {'runs are' if several else 'run is'} in {out}{'/draw-…' if several else ''}")
