"""`onedomain evaluate`: score a trained run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

if TYPE_CHECKING:
    from onedomain.benchmarks import Benchmark
    from onedomain.evaluation.scores import Evaluation
    from onedomain.training.run import Run

GROUP = shared.USE


@dataclass(frozen=True)
class Options:
    run: str = shared.run_folder()
    benchmark: str | None = shared.benchmark()
    on: list[str] | None = shared.option("--on NAME=DIR", "Score your own image folder; may be repeated.")
    seen: list[str] | None = shared.option(
        "--seen NAME", "A name of --on that is of the source: not in the average over unseen domains; may be repeated."
    )
    data: str | None = shared.data()
    device: str | None = shared.device()
    threads: int | None = shared.threads()
    json: bool = shared.json()


def evaluate(options: Options) -> None:
    """Score a trained run on its benchmark's domains, on another benchmark's, or on your own folders."""
    from onedomain.benchmarks import find_benchmark, known_benchmark
    from onedomain.benchmarks.protocol.request import score_on
    from onedomain.data import data_folder
    from onedomain.errors import UserError
    from onedomain.training.fit import load
    from onedomain.training.own_folders import named_folders

    shared.use_threads(options.threads)
    run = load(options.run, device=options.device)
    if options.on and options.benchmark:
        raise UserError("--on", "given together with --benchmark", "one of them")
    if options.seen and not options.on:
        raise UserError("--seen", "given without --on", "a name of --on")
    name = options.benchmark or run.manifest.benchmark
    if options.on:
        evaluation = run.evaluate(named_folders(run, options.on), seen=options.seen or [], progress=True)
        show_and_keep(run, evaluation, None, options.json)
    elif name:
        benchmark = find_benchmark(name) if options.benchmark else known_benchmark(name)
        show_and_keep(run, score_on(run, benchmark, data_folder(options.data)), benchmark, options.json)
    else:
        given = f"not given, and {options.run} was trained on your own images"
        raise UserError("--on", given, "NAME=DIR or --benchmark")


def show_and_keep(run: Run, evaluation: Evaluation, benchmark: Benchmark | None, as_json: bool) -> None:
    """Keep the scores, then show them: neither a terminal that is gone nor a full disk loses them."""
    from onedomain.data.progress import say

    name = benchmark.name if benchmark else None
    try:
        run.write_records(evaluation, name)
    finally:
        _show(run, evaluation, benchmark, as_json)
    for reason in evaluation.missing:
        say(f"not scored: {reason}")


def _show(run: Run, evaluation: Evaluation, benchmark: Benchmark | None, as_json: bool) -> None:
    from onedomain.cli import corruption_tables, tables

    name = benchmark.name if benchmark else None
    measured = corruption_tables.measured(run, evaluation, benchmark) if benchmark and benchmark.corruptions else None
    if as_json:
        document = tables.evaluation_as_json(run, evaluation, name)
        if measured:
            document["robustness"] = corruption_tables.as_json(*measured)
        print_json(document)
    elif measured:
        corruption_tables.show_corruptions(run, evaluation, *measured)
    else:
        tables.show_evaluation(run, evaluation)
    tables.say_if_not_held_out(run)
