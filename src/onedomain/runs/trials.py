"""What `tune` found: one record per trial, read without Optuna and without a model."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from onedomain.data.files import read_file, write_atomically
from onedomain.errors import UserError
from onedomain.runs.rows import ALLOWED, Count, Number, Setting, Strict, Text
from onedomain.settings import first_problem

TRIALS, RECIPE, STUDY = "trials.json", "recipe.yaml", "study.jsonl"  # in the folder of a tuning
COMPLETE, PRUNED = "complete", "pruned"


class Trial(Strict):
    """`score` is that of all its runs; of a pruned trial the last one that was measured."""

    number: Count
    state: Literal["complete", "pruned", "failed", "running"]
    score: Number | None
    searched: dict[Text, Setting]
    runs: list[Annotated[str, Field(pattern=r"^trial-[\w-]{1,100}$")]]  # the names of their folders
    seconds: Number
    error: Text = ""


class Tuning(Strict):
    """All trials of a method, and what each setting mattered for the score (shares of 1; empty where too few are)."""

    onedomain: Text
    method: Text
    benchmark: Text | None
    objective: Text
    metric: Text
    steps: Count
    seeds: Count
    usual: dict[Text, Setting]  # the usual values of what was searched
    trials: list[Trial]
    importance: dict[Text, Number]
    command: Text

    @property
    def complete(self) -> list[Trial]:
        """The best first; of equals the earlier."""
        done = [trial for trial in self.trials if trial.state == COMPLETE]
        return sorted(done, key=lambda trial: (-(trial.score or 0.0), trial.number))

    @property
    def median(self) -> float | None:
        return median(trial.score or 0.0 for trial in self.complete) if self.complete else None

    @property
    def of_usual(self) -> float | None:
        """The score of the usual settings."""
        return next((trial.score for trial in self.complete if trial.searched == self.usual), None)

    def write(self, folder: Path) -> None:
        write_atomically(folder / TRIALS, self.model_dump_json(indent=1) + "\n")


def read_tuning(folder: Path) -> Tuning | None:
    """That of a folder; None if it is of no tuning."""
    path = folder / TRIALS
    if not path.is_file():
        return None
    try:
        return Tuning.model_validate_json(read_file(path))
    except ValidationError as error:
        field, given, allowed = first_problem(error)
        raise UserError(str(path), f"{field or 'cannot be understood:'} {given}", allowed or ALLOWED) from None
