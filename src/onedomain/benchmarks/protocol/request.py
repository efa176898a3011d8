"""What is to be trained, as a user asks for it, the run that this gives, and its scores on a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onedomain.benchmarks import BENCHMARKS, Benchmark, find_benchmark, known_benchmark
from onedomain.data import data_folder
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.evaluation.scores import Evaluation
from onedomain.methods import method_class
from onedomain.methods.base import Method
from onedomain.runs.commandline import resume_command
from onedomain.runs.manifest import read_manifest
from onedomain.runs.recipe import Recipe, find_recipe, is_file, read_recipe
from onedomain.training.fit import fit
from onedomain.training.objective import HOME, Judge, divide, parse_objective
from onedomain.training.own_folders import source_folder
from onedomain.training.run import Run

DEMO_BENCHMARK = "digits-lite"  # what is trained on if nothing else is said
BASELINE = "erm"


@dataclass(frozen=True)
class TrainingRequest:
    """A method, and a benchmark's source or a folder of the user's own images; None is what was not said."""

    benchmark: str | None = None
    source: str | None = None
    size: str | None = None  # HEIGHTxWIDTH, to bring the images of `source` to
    held_out: str | None = None  # a folder of further images of `source`
    method: str | None = None
    seed: int | None = None
    network: str | None = None
    recipe: str | None = None
    objective: str | None = None  # to choose settings by: a part of the source is held out for it
    settings: Mapping[str, Any] | None = None  # those that are not to be as the benchmark, or the method, has them

    def __post_init__(self) -> None:
        if self.benchmark and self.source:
            raise UserError("--source", "given together with --benchmark", "one of them")
        for name in ("size", "held_out"):
            if getattr(self, name) and not self.source:
                option = f"--{name.replace('_', '-')}"
                raise UserError(option, "given without --source", "with a folder of your own images")

    @property
    def folder(self) -> Path:
        """Where the run is kept if nothing else is said."""
        benchmark = self.find_benchmark()
        data = benchmark.name if benchmark else Path(str(self.source)).resolve().name
        return Path("runs") / f"{data}-{self.method_name}-{self.seed or 0}"

    @property
    def method_name(self) -> str:
        """The one asked for, else that of the recipe's file."""
        if self.method is None and self.recipe and is_file(self.recipe):
            return read_recipe(Path(self.recipe)).method
        return self.method or BASELINE

    def completed_from(self, folder: Path) -> TrainingRequest:
        """The request for the run in a folder: what is not said again is as it was.

        What is said again is compared when the run begins, and must be the same.
        """
        before = read_manifest(folder)
        if before.adaptation is not None:
            raise UserError("--out", f"{folder} holds an adapted run", resume_command(before, folder))
        if not (before.benchmark or self.benchmark or self.source):
            raise UserError("--source", f"not given, and {folder} was trained on your own images", "their folder")
        if before.benchmark and not (self.benchmark or self.source):
            known_benchmark(before.benchmark)  # not found as a file, which would be run
        method = self.method or before.method
        given = self.settings or {}
        if self.recipe:
            given = {**replace(self, method=method).find_recipe().settings, **given}
        return replace(
            self,
            benchmark=self.benchmark if self.benchmark or self.source else before.benchmark,
            size=self.size or ("x".join(map(str, before.source.image_shape[:2])) if self.source else None),
            method=method,
            seed=before.seed if self.seed is None else self.seed,
            network=self.network or before.network.name,
            objective=self.objective or before.objective,
            settings={**before.settings, **given},
        )

    def find_benchmark(self) -> Benchmark | None:
        """The benchmark whose source is trained on; None for a folder of the user's own."""
        return None if self.source else find_benchmark(self.benchmark or DEMO_BENCHMARK)

    def configured(self) -> Method:
        """The method with the settings that the benchmark gives it, but for those that are asked for."""
        benchmark, name = self.find_benchmark(), self.method_name
        usual = benchmark.settings_of(name) if benchmark else {}
        return method_class(name)(**{**usual, **self.find_recipe().settings, **(self.settings or {})})

    def find_recipe(self) -> Recipe:
        """The recipe that is asked for, whole."""
        benchmark, name = self.find_benchmark(), self.method_name
        forms = method_class(name).recipes
        return find_recipe(self.recipe, name, benchmark.recipes_of(name, forms) if benchmark else forms)

    def train(self, data: str | Path | None, *, score: bool = False, **options: Any) -> Run:
        """Train; `options` are those of `fit` that say where and how.

        With `score` a benchmark without any domain to score is refused before training.
        """
        benchmark, method = self.find_benchmark(), self.configured()
        common = {"seed": self.seed or 0, "recipe": self.find_recipe(), **options}
        if benchmark is None:
            source = source_folder(str(self.source), self.size)
            return fit(method, source, network=self.network, held_out=self.held_out, **common)
        folder = data_folder(data)
        source = benchmark.train(folder)
        if score:
            benchmark.load_for_scoring(folder)
        return fit(
            method,
            source,
            network=self.network or benchmark.network or None,
            benchmark=benchmark.name,
            usual=benchmark.settings_of(self.method_name),
            held_out=benchmark.calibration and benchmark.calibration(folder),
            **common,
        )

    def load_source(self, data: str | Path | None) -> Domain:
        benchmark = self.find_benchmark()
        return benchmark.train(data_folder(data)) if benchmark else source_folder(str(self.source), self.size)

    def train_and_judge(self, data: str | Path | None, **options: Any) -> tuple[Run, Evaluation]:
        """Train on a part of the source, and judge by the other part, changed: no target is read."""
        benchmark, method = self.find_benchmark(), self.configured()
        objective = parse_objective(str(self.objective), benchmark.targets if benchmark else ())
        source, judged = divide(self.load_source(data), objective)
        said = Judge(judged, method.settings.steps)
        run = fit(
            method,
            source,
            network=self.network or (benchmark and benchmark.network) or None,
            benchmark=benchmark.name if benchmark else None,
            usual=benchmark.settings_of(self.method_name) if benchmark else None,
            objective=objective.text,
            held_out=judged[HOME],
            watch=said.after_step,
            seed=self.seed or 0,
            recipe=self.find_recipe(),
            **options,
        )
        return run, said.finally_of(run)


def score_on(run: Run, benchmark: Benchmark, data: Path) -> Evaluation:
    """Scores of every domain whose data are there; `missing` says why the others were not scored.

    A benchmark whose images the run was trained on is refused.
    """
    benchmark.refuse_trained_on(run.manifest.benchmark, f"--benchmark {benchmark.name}")
    domains, missing = benchmark.load_for_scoring(data)
    trained = BENCHMARKS.get(run.manifest.benchmark or "")
    same_source = trained is not None and trained.train is benchmark.train
    # A target that the run was trained on, or adapted to, is not unseen, whatever its images are.
    known = [trained.source] if trained is not None else []
    known += [info.target for info in run.manifest.adaptations if info.benchmark is not None]
    home = [benchmark.source] if same_source else []
    seen = {*home, *(name for name in benchmark.targets if name in known)} & domains.keys()
    evaluation = run.evaluate(domains, seen=sorted(seen), progress=True, keep_going=True)
    return replace(evaluation, missing=(*missing, *evaluation.missing))
