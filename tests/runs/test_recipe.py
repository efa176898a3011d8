"""Recipes: named sets of settings, and files of them."""

from __future__ import annotations

import pytest
import yaml

import onedomain as od
from onedomain.benchmarks import find_benchmark
from onedomain.benchmarks.protocol.request import TrainingRequest
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.runs.manifest import read_manifest
from onedomain.runs.recipe import find_recipe, read_recipe
from tests.conftest import TinyNet

RECIPE = {"method": "erm", "settings": {"steps": 3, "learning_rate": 0.5, "batch_size": 6}}


def written(path, content):
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("benchmark", ["digits", "digits-lite", "cifar10-c-lite", "camvid", "pacs"])
def test_every_recipe_of_every_method_is_one_of_settings_that_go_together(benchmark):
    for method in method_names():
        for name in method_class(method).recipes:
            TrainingRequest(benchmark=benchmark, method=method, recipe=name).configured()


def test_on_digits_a_recipe_is_the_whole_protocol_and_elsewhere_the_form():
    def settings(method, recipe, benchmark):
        return TrainingRequest(benchmark=benchmark, method=method, recipe=recipe).configured().settings

    paper, released = settings("sdg", "paper", "digits"), settings("sdg", "released", "digits-shifted")
    assert (paper.steps, paper.relax, paper.range_margin, paper.domain_losses) == (10_000, "input", 0, "sum")
    assert (released.steps, released.warm_up, released.prior_weight, released.prior_logits) == (10_001, 99, 3.125, True)
    uncertain = settings("uncertain-sdg", "paper", "digits")
    assert (uncertain.steps, uncertain.learning_rate, uncertain.schedule) == (6_000, 1e-4, "constant")
    lite = settings("uncertain-sdg", "paper", "digits-lite")
    assert (lite.steps, lite.learning_rate, lite.image, lite.ceiling) == (300, 1e-3, False, 0)
    usual = find_benchmark("cifar10-c").settings_of("sdg")
    assert {**usual, **method_class("sdg").recipes["paper"]}.items() <= dict(
        settings("sdg", "paper", "cifar10-c")
    ).items()


def test_what_is_set_by_itself_takes_precedence_and_the_run_says_all_of_it(onedomain, tmp_path):
    recipe = written(tmp_path / "mine.yaml", RECIPE)
    words = ["train", "--recipe", recipe, "--set", "batch_size=4", "--threads", 1, "--no-evaluate"]
    code, _, error = onedomain(*words, "--out", tmp_path / "run")
    assert code == 0, error
    manifest = read_manifest(tmp_path / "run")
    assert manifest.recipe.startswith("mine.yaml ")
    assert {name: manifest.settings[name] for name in RECIPE["settings"]} == {**RECIPE["settings"], "batch_size": 4}
    assert set(manifest.usually) == set(RECIPE["settings"])
    # Resumed with the recipe or without it, it is the same run; with another one it is not.
    assert onedomain("train", "--resume", "--out", tmp_path / "run", "--no-evaluate", "--threads", 1)[0] == 0
    assert onedomain(*words, "--resume", "--out", tmp_path / "run")[0] == 0
    other = written(tmp_path / "other.yaml", {**RECIPE, "settings": {"learning_rate": 0.1}})
    code, _, error = onedomain("train", "--resume", "--recipe", other, "--out", tmp_path / "run", "--no-evaluate")
    assert code == 2
    assert "learning_rate: is 0.1 now, and was 0.5" in error


def test_fit_takes_a_name_or_a_file_and_the_users_own_settings_win(tiny, tmp_path):
    recipe = written(tmp_path / "mine.yaml", {**RECIPE, "method": "randconv"})
    how = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "progress": False}
    run = od.fit(od.RandConv(learning_rate=0.01), tiny, recipe=recipe, **how)
    assert (run.method.settings.steps, run.method.settings.learning_rate) == (3, 0.01)
    small = {"warm_up": 1, "steps": 2, "batch_size": 6}
    run = od.fit(od.UncertainSDG(**small), tiny, recipe="paper", **how)
    assert (run.manifest.recipe, run.method.settings.image, run.method.settings.domains) == ("paper", False, 3)
    assert od.fit(od.ERM(steps=1), tiny, **how).manifest.recipe == "default"
    with pytest.raises(UserError, match="recipe: got {'steps': 1}; allowed: the name of a recipe, or a file"):
        od.fit("erm", tiny, recipe={"steps": 1}, **how)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("papre", "recipe: 'papre' is not known, did you mean 'paper'?; allowed: FILE.yaml, default, paper, released"),
        ("none.yaml", "none.yaml is not a file"),
    ],
)
def test_a_recipe_that_is_not_there_is_one_line(recipe, told, onedomain, tmp_path):
    code, _, error = onedomain("train", "--method", "sdg", "--recipe", recipe, "--out", tmp_path / "run")
    assert (code, error.count("\n")) == (2, 1)
    assert told in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"settings": {"steps": 3}}, "method is not there"),
        ({"method": "erm", "settings": {}}, "settings got {}"),
        ({"method": "erm", "settings": {"steps": {"a": 1}}}, "settings.steps"),
        ({"method": "erm", "settings": {"steps": 3}, "more": 1}, "more got 1"),
        ("a: [", "cannot be understood"),
        ("a: &b 1\nc: *b", "it has an alias"),
    ],
)
def test_a_file_that_is_no_recipe_is_one_line(content, told, tmp_path):
    path = written(tmp_path / "bad.yaml", content)
    with pytest.raises(UserError, match="bad.yaml: ") as error:
        read_recipe(path)
    assert told in str(error.value)


def test_a_recipe_of_another_method_or_with_an_unknown_setting_is_refused(tmp_path):
    path = written(tmp_path / "bad.yaml", {"method": "erm", "settings": {"alhpa": 1}})
    with pytest.raises(UserError, match="is of the method erm; allowed: a recipe of sdg"):
        find_recipe(path, "sdg", {})
    with pytest.raises(UserError, match="'alhpa' is not known"):
        TrainingRequest(recipe=str(path)).configured()
