"""The runs of a table as it is asked for: load its data, estimate and run what is not done, collect the records."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from onedomain.data import data_folder
from onedomain.data.processes import cores
from onedomain.data.progress import say
from onedomain.errors import Interrupted, UserError
from onedomain.methods import method_class
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.plan import Bench, PlannedRun, benchmark_at, by_recipe, plan
from onedomain.runs.cluster import Cluster
from onedomain.runs.job import Ended, Job
from onedomain.runs.recipe import DEFAULT
from onedomain.runs.sweep import Board, Grid, run_jobs

SCORING_COST = 0.3  # time of scoring an image by that of an image in a step of ERM
MEASURED_STEPS = 5

MOST = 1000  # seeds, and runs at a time
Size = tuple[str, tuple[int, int, int]]  # a network, and height, width and channels of its images


@dataclass
class Request:
    """What is asked for: a table at a scale, its seeds, and where and how its runs are made."""

    table: Table
    scale: Scale
    seeds: int = 3
    out: str | None = None
    jobs: int | None = None
    use: tuple[str, ...] = ()
    data: str | None = None
    device: str | None = None
    cluster: Cluster | None = None
    recipe: str | None = None

    def __post_init__(self) -> None:
        self.table, self.scale = self.table.at(self.scale)
        if self.recipe not in (None, DEFAULT):
            self.table = by_recipe(self.table, str(self.recipe))
        for option, number in (("--seeds", self.seeds), ("--jobs", self.jobs)):
            if number is not None and not 1 <= number <= MOST:
                raise UserError(option, f"got {number}", f"a whole number from 1 to {MOST}")
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError("--out", f"{self.folder} is a file", "a folder, there or not")

    @property
    def folder(self) -> Path:
        recipe = f"-{Path(self.recipe).stem}" if self.recipe else ""
        return Path(self.out or f"runs/reproduce/{self.table.name}-{self.scale.name}{recipe}")

    @property
    def parallel(self) -> int:
        return self.jobs or cores()

    def as_typed(self, records: Sequence[str] = ()) -> str:
        """The command that makes the same table anywhere: where data and runs are is not part of it."""
        seeds = ["--seeds", str(self.seeds)] if not records else []
        seeds += ["--recipe", self.recipe] if self.recipe else []
        files = (word for file in records for word in ("--from", file))
        return shlex.join(["onedomain", "reproduce", self.table.name, "--scale", self.scale.name, *seeds, *files])

    def to_go_on(self) -> str:
        """The command that goes on here."""
        given = {"--out": self.out, "--jobs": self.jobs, "--data": self.data, "--device": self.device}
        options = [*given.items(), *(("--use", folder) for folder in self.use)]
        words = [str(word) for option, value in options if value for word in (option, value)]
        words += self.cluster.words if self.cluster else []
        return " ".join([self.as_typed(), shlex.join(words)]) if words else self.as_typed()

    def plan(self, benches: Mapping[str, Bench]) -> list[PlannedRun]:
        return plan(self.table, self.scale, self.seeds, self.folder, benches, self.use)


def load_data(request: Request) -> dict[str, Bench]:
    """Every benchmark of the table, by its name."""
    import torch

    torch.set_num_threads(1)  # as the runs have it: a few steps may be measured
    data = data_folder(request.data)
    table, scale = request.table, request.scale
    benches = {name: Bench.load(benchmark_at(name, scale), data, adapting=table.few_shot) for name in table.benchmarks}
    for reason in dict.fromkeys(reason for bench in benches.values() for reason in bench.missing):
        say(f"not scored: {reason}")
    return benches


@dataclass(frozen=True)
class Estimate:
    """What is to be run, in this order, the seconds that each takes by its name, and what that rests on."""

    runs: tuple[PlannedRun, ...]
    seconds: dict[str, float]
    basis: str

    def together(self, parallel: int) -> float:
        return makespan((self.seconds[run.name] for run in self.runs), parallel)


def estimate(runs: Sequence[PlannedRun]) -> Estimate:
    """Methods' costs are relative to ERM's. One seed of everything comes first, in a seed the longest run.

    What is adapted comes after all that is trained.
    """
    taken: dict[Size, list[float]] = {}
    for run in runs:
        if run.state == "done" and run.records:
            of_any_domain = next(iter(run.records.scores(run.bench.benchmark.name).values()))
            took = next(iter(of_any_domain.values()))["train_seconds"]
            taken.setdefault(_size(run.bench), []).append(took / _work(run))
    steps = {size: median(times) for size, times in taken.items()}
    finished = [f"finished runs: {sum(map(len, taken.values()))}"] if taken else []
    seconds, measured = {}, []
    for run in runs:
        if run.state != "done":
            bench = run.bench
            if _size(bench) not in steps:
                batch = method_class("erm")(**bench.benchmark.settings_of("erm")).settings.batch_size
                timed = _measured_step(bench, batch)
                steps[_size(bench)] = timed * 32 / batch
                measured.append(f"{MEASURED_STEPS} steps of ERM, {1e3 * timed:.0f} ms each")
            scored = sum(map(len, bench.scored.values())) * (2 if run.parent else 1)  # the parent as well
            scoring = SCORING_COST * scored / 32
            left = 0.0 if run.state == "to score" else 1 - run.steps_done / run.method.settings.steps
            seconds[run.name] = steps[_size(bench)] * (left * _work(run) + scoring)
    waiting = [run for run in runs if run.name in seconds]
    waiting.sort(key=lambda run: (run.parent is not None, run.seed, -seconds[run.name]))
    return Estimate(tuple(waiting), seconds, "; ".join([*finished, *measured]))


def makespan(seconds: Iterable[float], parallel: int) -> float:
    """When the last of several runs ends, so many at a time, each begun by the first place that is free.

    >>> makespan([5.0, 4.0, 3.0], 2)
    7.0
    """
    free = [0.0] * parallel
    for each in seconds:
        free[free.index(min(free))] += each
    return max(free)


def _work(run: PlannedRun) -> float:
    """A run's training in steps of ERM with 32 images."""
    method, settings = run.method, run.method.settings
    preparing = method.preparation_cost(len(run.bench.source))
    return settings.steps * method.step_cost * settings.batch_size / 32 + preparing


def _size(bench: Bench) -> Size:
    """Benchmarks that have it in common take as long for a step."""
    return bench.benchmark.network, bench.source.image_shape


def _measured_step(bench: Bench, batch_size: int) -> float:
    """Seconds of a step of ERM on this machine as it is now, on as many threads as torch may use."""
    import torch

    from onedomain.methods.base import Setup
    from onedomain.networks import build_network
    from onedomain.training.randomness import private_randomness

    erm = method_class("erm")()
    with private_randomness():
        network = build_network(bench.benchmark.network, len(bench.source.classes), bench.source.image_shape)
        batch = bench.source.batch([place % len(bench.source) for place in range(batch_size)])
        erm.set_up(Setup(network, batch.images, torch.device("cpu"), bench.source))
        times = []
        for step in range(2 + MEASURED_STEPS):  # the first ones are slower
            begun = time.perf_counter()
            erm.step(batch, step)
            times.append(time.perf_counter() - begun)
    return median(times[2:])


def run_grid(
    request: Request,
    benches: Mapping[str, Bench],
    board: Callable[[str, int], AbstractContextManager[Board]],
    keep_open: Sequence[int],
) -> Grid:
    """Run what is not done; `board` is the display of so many runs, under a label."""
    runs = request.plan(benches)
    done = sum(run.state == "done" for run in runs)
    if done:
        say(f"{done} of {len(runs)} runs are there already")
    if done == len(runs):
        return Grid([], stopped=0)
    expected = estimate(runs)
    ended: list[Ended] = []
    with request.cluster.connected(request.folder) if request.cluster else nullcontext() as cluster:
        for adapted in (False, True):  # what is adapted needs its parent whole
            failed = {each.name for each in ended if each.error}
            jobs = []
            for run in expected.runs:
                if (run.parent is not None) is not adapted:
                    continue
                log = request.folder / "logs" / f"{run.name}.log"
                if run.parent and run.parent.name in failed:
                    ended.append(Ended(run.name, log, 0.0, f"{run.parent.name}, which it is adapted from, failed"))
                else:
                    threads = request.cluster.cpus if request.cluster else 1
                    words = run.command(request.data, request.device, threads)
                    needs = (run.parent.folder,) if run.parent else ()
                    jobs.append(Job(run.name, words, log, expected.seconds[run.name], run.folder, needs))
            if not jobs:
                continue
            parallel = len(jobs) if cluster and not request.jobs else request.parallel
            with board(request.table.name, len(jobs)) as shown:
                grid = run_jobs(jobs, parallel, shown, keep_open, cluster)
            ended += grid.ended
            if grid.stopped:
                left = len(expected.runs) - len(ended)
                told = f"stopped with {left} of {len(runs)} runs to go; go on with: {request.to_go_on()}"
                raise Interrupted(told, grid.stopped)
    return Grid(ended, stopped=0)


def collect(runs: Sequence[PlannedRun]) -> list[dict[str, Any]]:
    """All records of these runs on their benchmarks as these are now, and what each run was made with."""
    records = []
    for run in runs:
        if run.records:
            made_with = run.records.manifest.environment.model_dump(include={"python", "torch", "numpy"})
            benchmark, scored = run.bench.benchmark.name, run.bench.scored
            rows = [
                row
                for row in run.records.results
                if row.get("benchmark") == benchmark
                and (row["domain"] not in scored or row["data"] == scored[row["domain"]].fingerprint)
            ]
            info = run.records.manifest.adaptation
            told = {"environment": made_with} | ({"adaptation": info.in_short()} if info else {})
            records += [{**row, **told} for row in rows]
    return records
