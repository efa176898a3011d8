"""`onedomain tune` with real runs: killed and gone on with, its table, its recipe, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from onedomain.benchmarks import BENCHMARKS
from onedomain.runs.manifest import read_manifest
from tests.benchmarks.test_own import MINE

SPACE = "learning_rate: {among: [0.0001, 0.01]}\n"


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "space.yaml").write_text(SPACE)
    yield tmp_path
    BENCHMARKS.pop("day-to-night", None)


def test_killed_it_goes_on_finds_the_better_setting_and_writes_a_recipe(mine, onedomain, monkeypatch):
    monkeypatch.chdir(mine)
    words = ["tune", "--benchmark", "mine.py", "--space", "space.yaml", "--trials", 4, "--steps", 6, "--out", "out"]
    command = [sys.executable, "-m", "onedomain", *map(str, words)]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    for line in first.stderr:
        if line.startswith("begin"):
            break
    while not (mine / "out" / "trial-000" / "run.yaml").exists():
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    code, out, error = onedomain(*words, "--json")
    assert code == 0, error
    told = json.loads(out)
    assert [trial["state"] for trial in told["trials"]] == ["complete"] * 4
    runs = sorted({name for trial in told["trials"] for name in trial["runs"]})
    assert len(runs) == 2  # what was tried is not run again
    assert len(list((mine / "out").glob("trial-*"))) == 2
    scores = {trial["searched"]["learning_rate"]: trial["score"] for trial in told["trials"]}
    assert told["recipe"]["settings"]["learning_rate"] == max(scores, key=scores.get)
    manifest = read_manifest(mine / "out" / "trial-000")
    assert (manifest.objective, manifest.source.count) == ("generated-shifts", 48)
    records = [json.loads(line) for line in (mine / "out" / runs[1] / "results.jsonl").read_text().splitlines()]
    assert {row["domain"] for row in records} >= {"held out", "inverted", "reshaped"}
    assert "night" not in {row["domain"] for row in records}  # the target
    assert "| trial |" in (mine / "out" / "README.md").read_text()
    code, _, error = onedomain("report", "out", "--out", "report.html")
    assert code == 0, error
    page = (mine / "report.html").read_text()
    assert "How settings were chosen" in page
    assert "What mattered" in page
    # All is there: the same command shows it, trains nothing and needs no more.
    code, out, error = onedomain(*words)
    assert code == 0
    assert "all 4 trials are there already" in error
    assert "best" in out
    train = ["train", "--benchmark", "mine.py", "--recipe", "out/recipe.yaml", "--out", "run", "--no-evaluate"]
    assert onedomain(*train, "--threads", 1)[0] == 0
    assert read_manifest(mine / "run").recipe.startswith("recipe.yaml ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--objective", "uci"],
            "--objective: 'uci' is a target, and settings are never chosen by one; allowed: generated",
        ),
        (["--objective", "test"], "--objective: 'test' is not known"),
        (["--trials", 0], "--trials: got 0"),
        (["--space", "none.yaml"], "--space: none.yaml is not a file"),
        (["--recipe", "paper"], "recipe: 'paper' is not known; allowed: FILE.yaml, default"),
        (["--gpus-per-run", 1], "--gpus-per-run: given without --on ray"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(words, told, onedomain, tmp_path):
    code, _, error = onedomain("tune", *words, "--out", tmp_path / "out")
    assert (code, error.count("\n")) == (2, 1)
    assert told in error
    assert not (tmp_path / "out").exists()


def test_without_optuna_one_line_says_what_to_install(onedomain, monkeypatch):
    monkeypatch.setattr("onedomain.training.study.find_spec", lambda name: None)
    code, _, error = onedomain("tune")
    assert (code, error) == (2, "onedomain: tune: optuna is not installed; allowed: pip install 'onedomain[tune]'\n")
