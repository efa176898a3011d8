from __future__ import annotations

import json
import shutil

import pytest
from PIL import Image


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
