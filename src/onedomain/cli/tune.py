"""`onedomain tune`: search the settings of a method, judged by generated changes of held-out source images."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedomain.cli import options as shared

if TYPE_CHECKING:
    from onedomain.runs.trials import Tuning
    from onedomain.training.tune import Plan, Search

GROUP = shared.TRAIN
MOST = 10_000  # trials and seeds
HERE = ("trials", "jobs", "out", "data", "device")  # what is typed again to go on, beside what the tuning is


@dataclass(frozen=True)
class Options:
    method: str | None = shared.option("--method -m", "See `onedomain methods`. [erm]", complete="methods:method_names")
    benchmark: str | None = shared.benchmark()
    trials: int = shared.option("--trials", "How many settings to try, pruned ones counted.", default=20)
    seeds: int = shared.option("--seeds", "Runs of each trial, whose mean score counts.", default=1)
    objective: str = shared.option(
        "--objective WHAT",
        "generated-shifts or held-out-augmentations: what settings are chosen by, never a target.",
        default="generated-shifts",
        complete="training.objective:OBJECTIVES",
    )
    space: str | None = shared.option("--space FILE", "What to search, instead of what the method declares (YAML).")
    recipe: str | None = shared.recipe()
    steps: int | None = shared.steps()
    assignments: list[str] | None = shared.assignments()
    network: str | None = shared.option(
        "--network", "Another network than the benchmark's.", complete="networks:network_names"
    )
    weights: str | None = shared.option("--weights FILE", "Weights to start from.")
    source: str | None = shared.option(
        "--source DIR", "Train on these instead: one sub-folder per class.", group=shared.OWN_IMAGES
    )
    size: str | None = shared.option("--size HxW", "Bring them to this size.", group=shared.OWN_IMAGES)
    out: str | None = shared.option("--out DIR", "Where runs, table and recipe are kept. [runs/tune/BENCHMARK-METHOD]")
    jobs: int | None = shared.jobs()
    on: str = shared.on()
    address: str | None = shared.address()
    cpus_per_run: int | None = shared.cpus_per_run()
    gpus_per_run: float | None = shared.gpus_per_run()
    data: str | None = shared.data()
    device: str | None = shared.device()
    json: bool = shared.json()


def tune(options: Options) -> None:
    """Search the settings of a method on the source alone, and write the best as a recipe for `train`.

    Killed or stopped, the same command goes on.
    """
    from onedomain.data.folders import SECONDS_TO_WAIT, sole_use
    from onedomain.errors import Interrupted, OnedomainError, UserError
    from onedomain.training.study import require_optuna
    from onedomain.training.tune import Search

    require_optuna()
    for name in ("trials", "seeds", "jobs"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= MOST:
            raise UserError(f"--{name}", f"got {value}", f"a whole number from 1 to {MOST:,}")
    cluster = shared.cluster(options)
    plan, folder = _plan(options)
    where = [*shared.as_typed(options, "data", "device"), "--threads", str(cluster.cpus if cluster else 1)]
    command = shlex.join(_words(options))
    with sole_use(folder, seconds=SECONDS_TO_WAIT, deep=False) as keep_open:
        search = Search(plan, folder, options.trials, tuple(where))
        stopped = _run(search, options, cluster, keep_open)
        tuning = search.tuning(command)
        tuning.write(folder)
        if stopped and search.left:
            told = f"stopped with {search.left} of {options.trials} trials to go"
            again = shared.as_typed(options, *HERE)
            again += cluster.words if cluster else []
            raise Interrupted(f"{told}; go on with: {command} {shlex.join(again)}", stopped)
        if not tuning.complete:
            errors = [trial.error for trial in tuning.trials if trial.error]
            reason = f" ({errors[0]})" if errors else ""
            raise OnedomainError(f"no trial is complete{reason}; see their output in {folder / 'logs'}")
        _keep_and_show(tuning, search, folder, options.json)


def _plan(options: Options) -> tuple[Plan, Path]:
    """What is to be searched, with all that can be wrong told before anything is written."""
    from onedomain.benchmarks.protocol.request import TrainingRequest
    from onedomain.settings import given_settings
    from onedomain.training.fit import usual_of_own
    from onedomain.training.objective import divide, parse_objective
    from onedomain.training.search_space import space_of
    from onedomain.training.tune import Plan

    given = given_settings(options.assignments or [], options.steps)
    request = TrainingRequest(
        benchmark=options.benchmark,
        source=options.source,
        size=options.size,
        method=options.method,
        network=options.network,
        recipe=options.recipe,
        settings=given,
    )
    benchmark, method = request.find_benchmark(), request.configured()
    objective = parse_objective(options.objective, benchmark.targets if benchmark else ())
    source = request.load_source(options.data)
    folds = tuple([objective] if objective.category else objective.folds(source.dense))
    part, _ = divide(source, folds[0])
    if benchmark:
        usual = benchmark.settings_of(method.name)
    else:
        usual = usual_of_own(method.name, part, options.network, options.weights)
    fixed = {**usual, **method.settings.model_dump(exclude_unset=True)}
    words = ["--source", str(options.source)] if options.source else ["--benchmark", options.benchmark or ""]
    if benchmark and not options.benchmark:
        words = ["--benchmark", benchmark.name]
    words += ["--method", method.name, *shared.as_typed(options, "size", "network", "weights")]
    plan = Plan(
        method=method.name,
        benchmark=benchmark.name if benchmark else None,
        words=tuple(words),
        space=space_of(method.Settings, fixed, given, options.space),
        base=type(method)(**usual).settings.model_dump(mode="json"),
        folds=folds,
        seeds=options.seeds,
        source=source.fingerprint,
        metric="mIoU" if source.dense else "accuracy",
    )
    return plan, Path(options.out or Path("runs/tune") / f"{request.folder.name.rpartition('-')[0]}")


def _run(search: Search, options: Options, cluster: Any, keep_open: tuple[int, ...]) -> int:
    """Make the runs; what to exit with if that was stopped, else 0."""
    from contextlib import nullcontext

    from onedomain.cli.board import board
    from onedomain.data.processes import cores
    from onedomain.data.progress import say
    from onedomain.runs.sweep import run_jobs

    if not search.left:
        say(f"all {search.begun} trials are there already")
        return 0
    runs = search.left * search.plan.runs_per_trial
    parallel = options.jobs or (runs if cluster else cores())
    with cluster.connected(search.folder) if cluster else nullcontext() as place, board("tune", runs) as shown:
        return run_jobs([], parallel, shown, keep_open, place, search).stopped


def _keep_and_show(tuning: Tuning, search: Search, folder: Path, as_json: bool) -> None:
    from onedomain.cli.output import print_json
    from onedomain.data.files import write_atomically
    from onedomain.data.progress import say
    from onedomain.reporting.render.markdown import as_markdown
    from onedomain.reporting.render.terminal import show
    from onedomain.reporting.tuning import tuning_tables
    from onedomain.runs.trials import RECIPE

    tables = tuning_tables(tuning)
    recipe = search.recipe()
    try:
        write_atomically(folder / "README.md", as_markdown(*tables))
        recipe.write(folder / RECIPE)
    finally:
        if as_json:
            print_json({**tuning.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json")})
        else:
            show(*tables)
    train = shlex.join(["onedomain", "train", *search.plan.words, "--recipe", str(folder / RECIPE)])
    say(f"The settings of the best trial: {train}")
    say(f"The best trials beside each other: onedomain report {shlex.quote(str(folder))} --out report.html")


def _words(options: Options) -> list[str]:
    """What makes the same search anywhere: where data and runs are is not part of it."""
    names = ("benchmark", "source", "size", "method", "network", "weights", "objective", "space", "recipe")
    words = ["onedomain", "tune", *shared.as_typed(options, *names, "steps", "seeds")]
    return [*words, *(word for each in options.assignments or [] for word in ("--set", each))]
