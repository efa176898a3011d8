"""`tune`: trials of settings on Optuna. Each is a run of `onedomain train --objective`, made beside or after others."""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from onedomain._version import __version__
from onedomain.errors import UserError
from onedomain.runs.commandline import settings_options
from onedomain.runs.identity import BOOKKEEPING
from onedomain.runs.job import KILLED, Ended, Job
from onedomain.runs.recipe import Chosen, RecipeFile
from onedomain.runs.trials import Trial, Tuning
from onedomain.training.objective import Objective
from onedomain.training.search_space import Space, Value
from onedomain.training.study import begin_or_go_on, importance, open_study

if TYPE_CHECKING:
    import optuna

SECONDS = 60.0  # that a run is expected to take before any has ended: all take as long
MOST_LOSSES = 2  # times that a run of a trial may be killed, and resumes


@dataclass(frozen=True)
class Plan:
    """What a tuning is: it goes on only as the same.

    `words` are those of `train` that say on what, and `base` has the settings that `train` has by itself.
    """

    method: str
    benchmark: str | None
    words: tuple[str, ...]
    space: Space
    base: Mapping[str, Any]
    folds: tuple[Objective, ...]
    seeds: int
    source: str  # the fingerprint of the whole source
    metric: str

    @property
    def steps(self) -> int:
        return self.space.usual.steps

    @property
    def objective(self) -> str:
        return self.folds[0].name

    @property
    def runs_per_trial(self) -> int:
        return self.seeds * len(self.folds)

    def as_dict(self) -> dict[str, Any]:
        fixed = {name: value for name, value in self.space.settings({}).items() if name not in self.space.dimensions}
        told = {name: getattr(self, name) for name in ("method", "benchmark", "objective", "seeds", "source")}
        return {**told, **fixed, "words": list(self.words), "space": self.space.as_dict()}


@dataclass
class _Active:
    """A trial with runs to come."""

    trial: optuna.Trial
    settings: dict[str, Any]
    scores: list[float]  # of its runs that have ended
    seconds: float
    reported: set[int]
    going: str = ""  # the name of its run
    final: float | None = None  # score of that run
    hopeless: bool = False
    losses: int = 0
    twins: list[optuna.Trial] = field(default_factory=list)  # of the same settings


@dataclass
class Search:
    """The trials in a folder, as a feed of runs: those that a kill has left open come first, and then new ones."""

    plan: Plan
    folder: Path
    trials: int
    where: tuple[str, ...] = ()  # options of `train` that change no result
    active: list[_Active] = field(default_factory=list)

    def __post_init__(self) -> None:
        import optuna

        self.study = open_study(self.folder)
        begin_or_go_on(self.study, self.plan.as_dict(), self.plan.space.usual_values)
        for frozen in self.study.get_trials(deepcopy=False):
            if frozen.state == optuna.trial.TrialState.RUNNING:
                self._take(optuna.Trial(self.study, frozen._trial_id))

    @property
    def begun(self) -> int:
        return sum(each.state.name != "WAITING" for each in self.study.get_trials(deepcopy=False))

    @property
    def left(self) -> int:
        """Trials that have not ended."""
        return len(self.active) + sum(len(each.twins) for each in self.active) + max(0, self.trials - self.begun)

    @property
    def seconds_to_come(self) -> float:
        of_active = sum(self.plan.runs_per_trial - len(each.scores) - bool(each.going) for each in self.active)
        return SECONDS * (of_active + max(0, self.trials - self.begun) * self.plan.runs_per_trial)

    def next(self) -> Job | None:
        idle = next((each for each in self.active if not each.going), None)
        while idle is None and self.begun < self.trials:
            idle = self._ask()
        if idle is None:
            return None
        seed, fold = divmod(len(idle.scores), len(self.plan.folds))
        idle.going, idle.final = self._name(idle.trial.number, seed, self.plan.folds[fold]), None
        folder = self.folder / idle.going
        changed = {name: value for name, value in idle.settings.items() if value != self.plan.base[name]}
        words = ["train", *self.plan.words, *settings_options(changed), "--objective", self.plan.folds[fold].text]
        words += ["--seed", str(seed), "--resume", "--out", str(folder), *self.where]
        log = self.folder / "logs" / f"{idle.going}.log"
        return Job(idle.going, (sys.executable, "-m", "onedomain", *words), log, SECONDS, folder)

    def goes_on(self, name: str, done: int, score: float) -> bool:
        each = self._of(name)
        if done >= self.plan.steps:
            each.final = score
        step = len(each.scores) * self.plan.steps + done
        if step not in each.reported:
            each.reported.add(step)
            each.trial.report(fmean([*each.scores, score]), step)
        last = done >= self.plan.steps and len(each.scores) + 1 == self.plan.runs_per_trial
        each.hopeless = not last and each.trial.should_prune()
        return not each.hopeless or done >= self.plan.steps

    def ended(self, run: Ended) -> Ended:
        from optuna.trial import TrialState

        each = self._of(run.name)
        each.going = ""
        each.seconds += run.seconds
        each.trial.set_user_attr("seconds", each.seconds)
        # Once, also if a kill came before its score was kept.
        each.trial.set_user_attr("runs", list(dict.fromkeys([*each.trial.user_attrs.get("runs", []), run.name])))
        if not (run.error or run.early) and each.final is None:
            run = replace(run, error="told no score")
        if run.error.startswith(KILLED) and each.losses < MOST_LOSSES:
            each.losses += 1  # it resumes
            return run
        if run.error:
            each.trial.set_user_attr("error", run.error)
            self._tell(each, state=TrialState.FAIL)
            return run
        if each.final is not None and not run.early:
            each.scores.append(each.final)
            each.trial.set_user_attr("scores", each.scores)
        if each.hopeless:
            self._tell(each, state=TrialState.PRUNED)
            return replace(run, note="hopeless beside the others")
        if len(each.scores) == self.plan.runs_per_trial:
            self._tell(each, fmean(each.scores))
        return replace(run, note=f"score {each.scores[-1]:.2%}")

    def tuning(self, command: str) -> Tuning:
        """What is known of all trials."""
        names = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
        plan, usual = self.plan, self.plan.space.settings({})
        trials = []
        for each in self.study.get_trials(deepcopy=False):
            if each.state.name != "WAITING":
                last = each.intermediate_values[max(each.intermediate_values)] if each.intermediate_values else None
                trials.append(
                    Trial(
                        number=each.number,
                        state=names.get(each.state.name, "running"),  # type: ignore[arg-type]
                        score=last if each.value is None else each.value,
                        searched={**plan.space.readable(each.params)},
                        runs=each.user_attrs.get("runs", []),
                        seconds=each.user_attrs.get("seconds", 0.0),
                        error=each.user_attrs.get("error", ""),
                    )
                )
        return Tuning(
            onedomain=__version__,
            method=plan.method,
            benchmark=plan.benchmark,
            objective=plan.objective,
            metric=plan.metric,
            steps=plan.steps,
            seeds=plan.seeds,
            usual={name: usual[name] for name in plan.space.dimensions},
            trials=trials,
            importance=importance(self.study),
            command=command,
        )

    def recipe(self) -> RecipeFile:
        """The settings of the best trial, and how they were chosen."""
        tuning, best = self.tuning(""), max(self.study.trials, key=_score)
        settings = self.plan.space.settings(self.plan.space.readable(best.params))
        return RecipeFile(
            method=self.plan.method,
            settings={name: value for name, value in settings.items() if name not in BOOKKEEPING},
            chosen=Chosen(
                objective=self.plan.objective,
                source=self.plan.source,
                benchmark=self.plan.benchmark,
                score=_score(best),
                usual=tuning.of_usual,
                trials=len(tuning.trials),
                seeds=self.plan.seeds,
                searched=tuple(self.plan.space.dimensions),
                onedomain=__version__,
                date=datetime.date.today().isoformat(),
            ),
        )

    def _ask(self) -> _Active | None:
        """A new trial with runs to make, if it is one."""
        return self._take(self.study.ask())

    def _take(self, trial: optuna.Trial) -> _Active | None:
        """A trial as one with runs; none if it ends without: its settings do not go together, or were tried before."""
        import optuna

        try:
            each = self._begin(trial)
        except UserError as error:
            trial.set_user_attr("error", str(error))
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return None
        told = self.study.get_trials(deepcopy=False)
        twin = next((other for other in told if other.user_attrs.get("settings") == each.settings), None)
        if twin is not None and twin.number != trial.number:
            going = next((other for other in self.active if other.trial.number == twin.number), None)
            if going is None:
                self._end_like(trial, twin)
            else:
                going.twins.append(trial)
            return None
        if len(each.scores) == self.plan.runs_per_trial:  # a kill came before it was told
            self.study.tell(trial, fmean(each.scores))
            return None
        trial.set_user_attr("settings", each.settings)
        self.active.append(each)
        return each

    def _end_like(self, trial: optuna.Trial, twin: Any) -> None:
        """The same runs would give the same scores: nothing is run twice."""
        for name in ("runs", "scores", "error"):
            if name in twin.user_attrs:
                trial.set_user_attr(name, twin.user_attrs[name])
        for step, value in twin.intermediate_values.items():
            trial.report(value, step)
        complete = twin.value if twin.state.name == "COMPLETE" else None
        self.study.tell(trial, complete, state=None if complete is not None else twin.state)

    def _begin(self, trial: optuna.Trial) -> _Active:
        chosen: dict[str, Value] = self.plan.space.suggest(trial)
        told = trial.user_attrs
        reported = set(self.study.get_trials(deepcopy=False)[trial.number].intermediate_values)
        settings = self.plan.space.settings(chosen)
        return _Active(trial, settings, list(told.get("scores", [])), told.get("seconds", 0.0), reported)

    def _tell(self, each: _Active, value: float | None = None, state: Any = None) -> None:
        self.active.remove(each)
        told = self.study.tell(each.trial, value, state=state)
        for twin in each.twins:
            self._end_like(twin, told)

    def _of(self, name: str) -> _Active:
        return next(each for each in self.active if each.going == name)

    def _name(self, number: int, seed: int, fold: Objective) -> str:
        parts = [f"trial-{number:03}", f"seed-{seed}" if self.plan.seeds > 1 else "", fold.category]
        return "-".join(filter(None, parts))


def _score(trial: Any) -> float:
    """Only complete trials have one, the earlier of equals first."""
    return trial.value if trial.state.name == "COMPLETE" and trial.value is not None else -math.inf
