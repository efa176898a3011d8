from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onedomain.benchmarks import Benchmark

QUICK = ["train", "--benchmark", "digits-lite", "--steps", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two steps on the embedded benchmark, made by the command in a process of its own."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    done = subprocess.run([sys.executable, "-m", "onedomain", *QUICK, "--out", folder, "--json"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return folder, done


def test_train_prints_one_json_document_and_writes_records(trained):
    folder, done = trained
    scores = json.loads(done.stdout)
    assert set(scores["domains"]) == {"mnist", "uci", "mnist-m-blend", "syn-rendered", "svhn-style"}
    assert [name for name, row in scores["domains"].items() if not row["unseen"]] == ["mnist"]
    unseen = [row["accuracy"] for row in scores["domains"].values() if row["unseen"]]
    assert scores["average"]["accuracy"] == pytest.approx(np.mean(unseen))
    assert b"steps/s" in done.stderr
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {(r["domain"], r["metric"]): r["value"] for r in records}["uci", "accuracy"] == scores["domains"]["uci"][
        "accuracy"
    ]


def test_evaluate_gives_the_same_scores_again(trained, onedomain):
    folder, done = trained
    code, out, _ = onedomain("evaluate", folder, "--json", "--threads", 1)
    again, first = json.loads(out), json.loads(done.stdout)
    assert code == 0
    for name, row in first["domains"].items():
        assert again["domains"][name]["accuracy"] == row["accuracy"]
        assert again["domains"][name]["nll"] == pytest.approx(row["nll"], rel=1e-6)


def test_evaluate_prints_a_table_for_people(trained, onedomain):
    code, out, _ = onedomain("evaluate", trained[0], "--threads", 1)
    assert code == 0
    for text in ("erm, seed 0, 2 steps on mnist", "svhn-style", "95% interval", "average unseen"):
        assert text in out


def test_evaluate_on_folders_of_ones_own(trained, onedomain, tmp_path):
    for label in "07":
        (tmp_path / "night" / label).mkdir(parents=True)
        Image.new("L", (20, 30), 100).save(tmp_path / "night" / label / "x.png")
    code, out, _ = onedomain("evaluate", trained[0], "--on", f"night={tmp_path / 'night'}", "--json")
    assert code == 0
    assert json.loads(out)["domains"]["night"]["count"] == 2


def test_predict_says_label_probability_and_uncertainty(trained, onedomain, tmp_path):
    files = [tmp_path / "a.png", tmp_path / "b.jpg"]
    for file in files:
        Image.new("RGB", (50, 40), (10, 200, 30)).save(file)
    code, out, _ = onedomain("predict", trained[0], *files, "--json")
    rows = json.loads(out)["predictions"]
    assert json.loads(out)["calibration"]["held_out"]
    assert code == 0
    assert [row["file"] for row in rows] == list(map(str, files))
    for row in rows:
        assert row["probability"] == max(row["probabilities"].values())
        assert row["probabilities"][row["label"]] == row["probability"]
        assert sum(row["probabilities"].values()) == pytest.approx(1)
        assert 0 <= row["uncertainty"] <= np.log(10)
    _, shown, error = onedomain("predict", trained[0], files[0])
    assert "entropy" in shown
    assert "mutual" in shown
    assert "note: no source images were held out" not in error


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "--method", "emr"], "method: 'emr' is not known, did you mean 'erm'?"),
        (["train", "--benchmark", "digit"], "benchmark: 'digit' is not known, did you mean 'digits'?"),
        (["train", "--set", "lerning_rate=1"], "setting: 'lerning_rate' is not known, did you mean 'learning_rate'?"),
        (["train", "--set", "batch_size=0"], "batch_size: got '0'; allowed: greater than or equal to 1"),
        (["train", "--set", "batch_size"], "--set: got 'batch_size'; allowed: name=value"),
        (["train", "--steps", "0"], "steps: got 0; allowed: greater than or equal to 1"),
        (["train", "--steps", "ten"], "--steps"),
        (["train", "--steps", "2", "--set", "steps=3"], "--steps: given together with --set steps"),
        (["train", "--seed", "-1"], "seed: got -1; allowed: a whole number from 0"),
        (["train", "--threads", "0"], "--threads: got 0; allowed: a whole number from 1"),
        (["train", "--device", "tpu"], "device: 'tpu' is not there"),
        (["train", "--source", "nowhere"], "nowhere: is not a folder"),
        (["train", "--source", ".", "--benchmark", "digits"], "--source: given together with --benchmark"),
        (["train", "--source", ".", "--size", "big"], "--size: got 'big'; allowed: HEIGHTxWIDTH"),
        (["train", "--data", "nowhere", "--benchmark", "digits"], "--data: 'nowhere' is not a folder"),
        (["train", "--out", "file"], "out: file is a file; allowed: a new or empty folder"),
        (["train", "--out", "full"], "out: full exists and is not empty; allowed: a new or empty folder"),
        (["train", "--out", "file/below"], "file/below: cannot be written"),
        (["train", "--sed", "1"], "No such option: --sed"),
        (["trian"], "No such command 'trian'"),
        (["evaluate", "nowhere"], "nowhere: is not a run folder"),
        (["evaluate"], "Missing argument 'RUN'"),
        (["predict", "nowhere", "x.png"], "nowhere: is not a run folder"),
        (["data", "check", "mnits"], "data: 'mnits' is not known, did you mean 'mnist'?"),
        (["data", "prepare", "mnits"], "data: 'mnits' is not known, did you mean 'mnist'?"),
    ],
)
def test_a_mistake_ends_in_one_line_and_code_2_and_writes_nothing(onedomain, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    before = sorted(map(str, Path().rglob("*")))
    code, out, error = onedomain(*arguments)
    assert code == 2
    assert line in error
    assert error.count("\n") == 1
    assert out == ""
    assert sorted(map(str, Path().rglob("*"))) == before


@pytest.mark.parametrize("content", [b"\x80\x04cos\nsystem\n", b"", "pickle"])
def test_a_foreign_checkpoint_is_refused_and_never_run(trained, onedomain, tmp_path, content):
    folder, _ = trained
    run = tmp_path / "b"
    run.mkdir()
    (run / "run.yaml").write_bytes((folder / "run.yaml").read_bytes())
    mark = tmp_path / "executed"
    if content == "pickle":
        content = pickle.dumps(Bomb(str(mark)))
    (run / "checkpoint.pt").write_bytes(content)
    code, _, error = onedomain("train", "--resume", "--out", run, "--threads", 1)
    assert code == 2
    assert "checkpoint.pt: is not a whole checkpoint" in error
    assert not mark.exists()
    assert (run / "checkpoint.pt").read_bytes() == content


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_resume_needs_no_more_than_the_folder_and_refuses_changes(trained, onedomain):
    folder, _ = trained
    weights = (folder / "model.safetensors").read_bytes()
    code, _, _ = onedomain("train", "--resume", "--out", folder, "--no-evaluate", "--threads", 1)
    assert code == 0
    assert (folder / "model.safetensors").read_bytes() == weights
    code, _, error = onedomain("train", "--resume", "--out", folder, "--set", "batch_size=8")
    assert code == 2
    assert "batch_size: is 8 now, and was 32" in error
    code, _, error = onedomain(*QUICK, "--out", folder)
    assert code == 2
    assert "--resume to go on with this run" in error


def test_names_are_shown_as_they_are(trained, onedomain, tmp_path):
    file = tmp_path / "b[bold]:smile:[x].png"
    Image.new("L", (9, 9)).save(file)
    code, out, _ = onedomain("predict", trained[0], file)
    assert code == 0
    column = "".join(re.sub(r"  .*", "", line.strip()) for line in out.splitlines())  # a long name is folded
    assert "b[bold]:smile:[x].png" in column


def test_broken_targets_are_told_before_training_and_do_not_stop_the_others(onedomain, tmp_path, real_data):
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "mnist.npz").symlink_to(real_data.resolve() / "digits" / "mnist.npz")
    (tmp_path / "digits" / "svhn.npz").write_bytes(b"PK")
    arguments = ["train", "--benchmark", "digits", "--steps", 1, "--data", tmp_path, "--out", tmp_path / "run"]
    code, _, error = onedomain(*arguments)
    assert code == 2
    assert "no unseen domain is there" in error
    assert not (tmp_path / "run").exists()
    (tmp_path / "digits" / "usps.npz").symlink_to(real_data.resolve() / "digits" / "usps.npz")
    code, out, error = onedomain(*arguments, "--json")
    assert code == 0
    scores = json.loads(out)
    assert list(scores["domains"]) == ["mnist", "usps"]
    assert any("svhn" in reason for reason in scores["missing"])
    # The 5,000 digits of digits-lite are among the 10,000 that this run was trained on.
    code, _, error = onedomain("evaluate", tmp_path / "run", "--benchmark", "digits-lite")
    assert code == 2
    assert "among the training images of a digits run" in error


def test_scores_of_two_benchmarks_stand_side_by_side(trained, onedomain, tmp_path, real_data):
    folder = tmp_path / "copy"
    shutil.copytree(trained[0], folder)
    (tmp_path / "digits").mkdir()
    for name in ("mnist", "usps"):
        (tmp_path / "digits" / f"{name}.npz").symlink_to(real_data.resolve() / "digits" / f"{name}.npz")
    code, out, _ = onedomain("evaluate", folder, "--benchmark", "digits", "--data", tmp_path, "--json")
    assert code == 0
    assert json.loads(out)["domains"]["mnist"]["unseen"]
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    found = {(row["benchmark"], row["domain"], row["split"]) for row in records if row["metric"] == "accuracy"}
    assert {("digits-lite", "mnist", "validation"), ("digits", "mnist", "test"), ("digits", "usps", "test")} <= found
    assert {row["trained_on"] for row in records} == {"digits-lite"}


def test_resume_finds_the_default_folder_and_says_when_there_is_nothing(onedomain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ["train", "--threads", 1, "--no-evaluate"]
    code, _, error = onedomain(*quick, "--steps", 2, "--seed", 7, "--resume")
    assert code == 0
    assert "nothing to resume in runs/digits-lite-erm-7" in error
    assert onedomain(*quick, "--seed", 7, "--resume")[0] == 0


def test_demo_trains_once_and_shows_a_comparison(onedomain, tmp_path, monkeypatch):
    load = Benchmark.load_for_scoring

    def few(self, data):
        domains, missing = load(self, data)
        return {name: domain.subset(range(60)) for name, domain in domains.items()}, missing

    monkeypatch.setattr(Benchmark, "load_for_scoring", few)
    monkeypatch.setattr(
        "onedomain.reporting.page.sections.figures", lambda runs, benchmark: ([], [])
    )  # they take seconds
    code, out, error = onedomain("demo", "--out", tmp_path / "demo", "--steps", 2, "--threads", 1)
    assert code == 0
    assert "average unseen" in out
    page = tmp_path / "demo" / "report.html"
    assert f"The report is in {page}" in error
    assert page.read_text(encoding="utf-8").count('class="image-card"') > 10
    assert page.stat().st_size < 3_000_000
    again = onedomain("demo", "--out", tmp_path / "demo", "--steps", 2, "--threads", 1)
    assert again[0] == 0
    assert again[1] == out
    assert "is trained already" in again[2]
    assert "is trained already" not in error
