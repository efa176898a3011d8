"""The search, with numbers in the place of runs; `tests/cli/test_tune.py` has real ones."""

from __future__ import annotations

import math

import pytest
import yaml

from onedomain.errors import UserError
from onedomain.methods import METHODS, method_class
from onedomain.methods.erm import ERM
from onedomain.methods.sdg import SDG
from onedomain.runs.job import Ended
from onedomain.runs.recipe import find_recipe, read_recipe
from onedomain.runs.trials import read_tuning
from onedomain.settings import parse_assignments
from onedomain.training.objective import Objective
from onedomain.training.search_space import space_of
from onedomain.training.tune import Plan, Search

STEPS = 100
SHIFTED = (Objective("generated-shifts"),)
RATE = {"learning_rate": {"low": 1e-5, "high": 1e-1, "log": True}}


def plan(tmp_path, space=RATE, seeds=1, folds=SHIFTED, **given):
    file = tmp_path / "space.yaml"
    file.write_text(yaml.safe_dump(space))
    fixed = {"steps": STEPS, **given}
    base = ERM().settings.model_dump(mode="json")
    found = space_of(ERM.Settings, fixed, given, str(file))
    return Plan("erm", "digits", ("--benchmark", "digits"), found, base, tuple(folds), seeds, "f00d", "accuracy")


def settings_of(job):
    words = list(job.command)
    return parse_assignments([words[place + 1] for place, word in enumerate(words) if word == "--set"])


def make(search, score, killed_after=math.inf):
    """Make the runs as `run_jobs` does, one at a time; what each said, and whether it was ended early."""
    made = []
    while len(made) < killed_after and (job := search.next()):
        early = False
        for done in (25, 50, 75, STEPS):
            if not search.goes_on(job.name, done, score(settings_of(job), job, done)):
                early = True
                break
        if len(made) + 1 == killed_after:  # killed before anything of its end is kept
            return made
        search.ended(Ended(job.name, job.log, 1.0, early=early))
        made.append((job.name, early))
    return made


def near(best):
    return lambda settings, job, done: 1 - abs(math.log10(float(settings.get("learning_rate", 1e-4)) / best)) / 5


def test_the_better_of_two_planted_settings_is_found_and_becomes_a_recipe(tmp_path):
    search = Search(plan(tmp_path, {"schedule": {"among": ["constant", "cosine"]}}), tmp_path, trials=6)
    make(search, lambda settings, job, done: 0.9 if settings.get("schedule") == "cosine" else 0.2)
    runs = {name for trial in search.tuning("").trials for name in trial.runs}
    assert (len(runs), len(search.tuning("").complete)) == (2, 6)  # no settings are run twice
    search.recipe().write(tmp_path / "recipe.yaml")
    found = read_recipe(tmp_path / "recipe.yaml")
    assert (found.settings["schedule"], found.settings["steps"]) == ("cosine", STEPS)
    assert (found.chosen.score, found.chosen.usual, found.chosen.searched) == (0.9, 0.2, ("schedule",))
    assert find_recipe(tmp_path / "recipe.yaml", "erm", {}).settings["schedule"] == "cosine"


def test_it_comes_near_to_a_planted_rate_and_says_what_mattered(tmp_path):
    space = {**RATE, "weight_decay": {"low": 0.0, "high": 0.1}}
    search = Search(plan(tmp_path, space), tmp_path, trials=25)
    make(search, near(3e-3))
    search.tuning("onedomain tune").write(tmp_path)
    tuning = read_tuning(tmp_path)
    assert 1e-3 < tuning.complete[0].searched["learning_rate"] < 1e-2
    assert tuning.trials[0].searched == {"learning_rate": 1e-4, "weight_decay": 0.0}  # the usual ones come first
    assert tuning.of_usual == tuning.trials[0].score < tuning.complete[0].score
    assert tuning.importance["learning_rate"] > tuning.importance["weight_decay"]
    # What the recipe holds is what the best trial was run with.
    assert search.recipe().settings["learning_rate"] == tuning.complete[0].searched["learning_rate"]


def test_hopeless_trials_are_pruned_and_counted_and_never_the_best(tmp_path):
    search = Search(plan(tmp_path), tmp_path, trials=15)
    made = make(search, near(1e-4))
    pruned = [trial for trial in search.tuning("").trials if trial.state == "pruned"]
    assert 0 < len(pruned) == sum(early for _, early in made) < 15
    assert all(trial.score is not None and trial.runs for trial in pruned)
    assert search.tuning("").complete[0].state == "complete"


def test_killed_in_the_middle_it_goes_on_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = Search(plan(tmp_path), tmp_path / "whole", trials=9)
    make(whole, near(1e-3))
    make(Search(plan(tmp_path), tmp_path / "killed", trials=9), near(1e-3), killed_after=4)
    with (tmp_path / "killed" / "study.jsonl").open("a") as file:
        file.write('{"op_code": 4, "worker')  # what a kill has cut
    again = Search(plan(tmp_path), tmp_path / "killed", trials=9)
    assert [each.trial.number for each in again.active] == [3]
    assert make(again, near(1e-3))[0][0] == "trial-003"
    assert again.left == 0
    told = [[(t.number, t.state, t.score, t.searched) for t in each.tuning("").trials] for each in (whole, again)]
    assert told[0] == told[1]
    more = Search(plan(tmp_path), tmp_path / "killed", trials=10)
    assert [name for name, _ in make(more, near(1e-3))] == ["trial-009"]


@pytest.mark.parametrize("seeds", [1, 2])
def test_killed_after_any_line_of_the_study_it_comes_to_the_same(tmp_path, seeds):
    both = {**RATE, "schedule": {"among": ["constant", "cosine"]}}
    search = Search(plan(tmp_path, both, seeds=seeds), tmp_path, trials=3)
    make(search, near(1e-3))
    lines = (tmp_path / "study.jsonl").read_bytes().splitlines(keepends=True)

    def told(search):
        return [(t.number, t.state, t.score, t.searched, t.runs) for t in search.tuning("").trials]

    wanted = told(search)
    for kept in range(1, len(lines)):
        (tmp_path / "study.jsonl").write_bytes(b"".join(lines[:kept]))
        again = Search(plan(tmp_path, both, seeds=seeds), tmp_path, trials=3)
        make(again, near(1e-3))
        assert (told(again), again.left) == (wanted, 0), lines[kept - 1]


@pytest.mark.parametrize(
    "content", ["no json\n", "3\n", '{"op_code": 4}\n', '{"op_code": 99, "worker_id": "a"}\n', "[" * 5000 + "\n"]
)
def test_a_study_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / "study.jsonl").write_text(content)
    with pytest.raises(UserError, match=r"study.jsonl: cannot be understood"):
        Search(plan(tmp_path), tmp_path, trials=2)


def test_a_trial_is_the_mean_of_its_seeds_and_folds(tmp_path):
    folds = Objective("held-out-augmentations").folds(dense=False)
    search = Search(plan(tmp_path, seeds=2, folds=folds), tmp_path, trials=1)
    scores = iter(range(6))
    made = make(search, lambda settings, job, done: next(scores) / 10 if done == STEPS else 0.0)
    assert [name for name, _ in made] == [f"trial-000-seed-{s}-{f.category}" for s in (0, 1) for f in folds]
    [trial] = search.tuning("").trials
    assert (trial.state, trial.score, len(trial.runs)) == ("complete", pytest.approx(0.25), 6)


def test_a_run_that_was_killed_begins_again_and_one_that_fails_does_not(tmp_path):
    search = Search(plan(tmp_path), tmp_path, trials=2)
    first = search.next()
    search.ended(Ended(first.name, first.log, 1.0, "killed by SIGKILL"))
    assert search.next().name == first.name
    search.ended(Ended(first.name, first.log, 1.0, "the loss became nan"))
    assert search.next().name == "trial-001"
    trial = search.tuning("").trials[0]
    assert (trial.state, trial.error) == ("failed", "the loss became nan")


def test_another_search_does_not_go_on_in_its_folder(tmp_path):
    Search(plan(tmp_path), tmp_path, trials=2)
    with pytest.raises(UserError, match="batch_size: is 8 now, and was 32"):
        Search(plan(tmp_path, batch_size=8), tmp_path, trials=2)
    with pytest.raises(UserError, match="seeds: is 2 now, and was 1"):
        Search(plan(tmp_path, seeds=2), tmp_path, trials=2)


def test_every_method_declares_a_space_whose_values_it_takes():
    for kind in METHODS.own():
        space = space_of(kind.Settings, {}, {}, None)
        assert "learning_rate" in space.dimensions
        assert space.usual_values is not None, kind.__name__
        for name, each in space.dimensions.items():
            for value in each.among or (each.low, each.high):
                space.settings({name: value})


def test_ranges_around_the_usual_follow_it_and_what_is_set_is_not_searched():
    space = space_of(SDG.Settings, {"learning_rate": 0.1, "alpha": 2.0}, {"alpha": 2.0}, None)
    assert (space.dimensions["learning_rate"].low, space.dimensions["learning_rate"].high) == (pytest.approx(0.01), 1.0)
    assert "alpha" not in space.dimensions
    assert space.settings({})["alpha"] == 2.0
    # A field in a subclass that takes the place of a general one is searched as well.
    assert "schedule" in space_of(method_class("moved-randconv").Settings, {}, {}, None).dimensions


@pytest.mark.parametrize(
    ("space", "told"),
    [
        ({"lr": {"low": 0, "high": 1}}, "setting: 'lr' is not known"),
        ({"learning_rate": {"low": 1, "high": 0.1}}, "low below high"),
        ({"learning_rate": {"low": 0.1}}, "settings with"),
        ({"learning_rate": {"low": -1, "high": 1}}, "learning_rate: got -1"),
        ({"schedule": {"among": ["cosine", "linear"]}}, "schedule: got 'linear'"),
        ({"learning_rate": 3}, "learning_rate got 3"),
        ({}, "no setting is searched"),
    ],
)
def test_a_wrong_space_is_one_line(space, told, tmp_path):
    with pytest.raises(UserError) as error:
        plan(tmp_path, space)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
