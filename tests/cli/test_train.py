from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from tests.cli.conftest import QUICK


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
    assert "--resume to continue this run" in error


def test_resume_finds_the_default_folder_and_says_when_there_is_nothing(onedomain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ["train", "--threads", 1, "--no-evaluate"]
    code, _, error = onedomain(*quick, "--steps", 2, "--seed", 7, "--resume")
    assert code == 0
    assert "nothing to resume in runs/digits-lite-erm-7" in error
    assert onedomain(*quick, "--seed", 7, "--resume")[0] == 0


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
