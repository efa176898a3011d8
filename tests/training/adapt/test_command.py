from __future__ import annotations

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.benchmarks import BENCHMARKS
from onedomain.methods.adapt.fine_tune import FineTune


def folder_of_images(path, count, shade, seed, classes=("cat", "dog")):
    """Small photographs, the dogs' lower half brighter; `shade` is what the place adds to all of them."""
    rng = np.random.default_rng(seed)
    for label, name in enumerate(classes):
        (path / name).mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 60, (16, 16, 3)) + shade
            pixels[8:] += 80 * label
            Image.fromarray(pixels.astype(np.uint8)).save(path / name / f"{number}.png")
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Images of two places, and a run on the first."""
    root = tmp_path_factory.mktemp("site")
    folder_of_images(root / "day", 200, 0, seed=0)
    folder_of_images(root / "night", 9, 90, seed=1)
    folder_of_images(root / "night-test", 5, 90, seed=2)
    source = od.image_folder(root / "day", name="source", split="train")
    od.fit(od.ERM(batch_size=8, learning_rate=1e-3), source, steps=12, out=root / "run", progress=False)
    return root


QUICK = ["--shots", 3, "--steps", 4, "--threads", 1]


def test_own_images_are_adapted_to_and_the_run_is_used_like_any_other(site, onedomain, tmp_path):
    target = f"night={site / 'night'}"
    given = ["--test", site / "night-test", "--source", site / "day", "--out", tmp_path / "b"]
    code, out, error = onedomain("adapt", site / "run", "--target", target, *QUICK, *given, "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["method"], told["parent_method"], told["shots"], told["settings"]["steps"]) == (
        "fine-tune",
        "erm",
        3,
        4,
    )
    assert told["parent"] == str(site / "run")
    assert (told["domains"]["night"]["count"], told["domains"]["night"]["split"]) == (10, "test")
    assert (told["domains"]["source"]["count"], told["domains"]["source"]["split"]) == (20, "held out")
    assert told["draws"][0]["run"] == str(tmp_path / "b")
    assert f"The adapted run is in {tmp_path / 'b'}" in error

    code, out, _ = onedomain("evaluate", tmp_path / "b", "--on", f"all={site / 'night'}", "--json")
    assert code == 0
    again = json.loads(out)
    assert again["domains"]["all"]["count"] == 12  # six of eighteen were drawn
    assert again["adaptation"]["target"] == "night"
    code, out, _ = onedomain("predict", tmp_path / "b", site / "night" / "cat" / "0.png", "--json")
    assert code == 0
    assert json.loads(out)["predictions"][0]["out_of_domain"] is not None


def test_a_table_for_people_with_every_draw_in_its_folder(site, onedomain, tmp_path):
    given = ["--target", site / "night", "--seeds", 2, "--out", tmp_path / "b"]
    code, out, error = onedomain("adapt", site / "run", *given, *QUICK)
    assert code == 0
    for text in ("erm, seed 0: fine-tune with 3 images per class of night, 4 steps; 2 draws, mean ±", "before %", "±"):
        assert text in " ".join(out.split())
    assert "not drawn" in out
    assert "what was forgotten was not measured" in error
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["draw-0", "draw-1"]
    code, out, _ = onedomain("evaluate", tmp_path / "b" / "draw-1", "--on", f"night={site / 'night'}")
    assert code == 0
    assert "fine-tune with 3 images per class of night, draw 1" in out


@pytest.mark.parametrize("method", ["fada", "ccsa"])
def test_from_scratch_on_source_and_target(site, onedomain, tmp_path, method):
    settings = ["--set", "pretrain_steps=1", "--set", "discriminator_steps=1"] if method == "fada" else []
    given = ["--target", f"night={site / 'night'}", "--method", method, *settings, "--set", "batch_size=8"]
    code, _, error = onedomain("adapt", site / "run", *given, *QUICK, "--out", tmp_path / "b")
    assert code == 2
    assert "--source: not given, and the run was trained on your own images" in error
    given += ["--source", site / "day", "--out", tmp_path / "b", "--json"]
    code, out, _ = onedomain("adapt", site / "run", *given, *QUICK)
    assert code == 0
    assert json.loads(out)["method"] == method
    assert od.load(tmp_path / "b").manifest.method == method


def test_stopped_it_says_how_to_go_on_and_ends_with_the_same_weights(site, onedomain, tmp_path, monkeypatch):
    given = ["adapt", site / "run", "--target", f"night={site / 'night'}", "--threads", 1, "--shots", 3, "--steps", 9]
    given += ["--device", "cpu", "--data", tmp_path]
    assert onedomain(*given, "--out", tmp_path / "whole")[0] == 0
    original, done = FineTune.step, []

    def stopped(self, batch, step):
        done.append(1)
        if len(done) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, batch, step)

    monkeypatch.setattr(FineTune, "step", stopped)
    code, _, error = onedomain(*given, "--out", tmp_path / "b")
    assert code == 130
    assert "stopped at step 5 of 9; saved; go on with: onedomain adapt" in error
    monkeypatch.setattr(FineTune, "step", original)
    again = error.split("go on with: onedomain ")[1].split()
    assert again[-6:] == ["--data", str(tmp_path), "--device", "cpu", "--threads", "1"]
    assert onedomain(*again)[0] == 0
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    code, _, error = onedomain("train", "--resume", "--out", tmp_path / "b")
    assert code == 2
    assert "holds an adapted run; allowed: onedomain adapt" in error


def test_mistakes_are_one_line_and_write_nothing(site, onedomain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of_images(tmp_path / "strange", 2, 90, seed=1, classes=("cat", "truck"))
    folder_of_images(tmp_path / "cats", 4, 90, seed=1, classes=("cat",))
    before = sorted(map(str, tmp_path.rglob("*")))
    night = f"night={site / 'night'}"
    for given, message in [
        (["--target", night, "--shots", 10], "shots: got 10, and night (train) has fewer images of class cat (9)"),
        (["--target", night, "--shots", 0], "shots: got 0"),
        (["--target", night, "--shots", 3, "--test", site / "night"], "test: 6 of the images drawn from night"),
        (["--target", night, "--shots", 3, "--seeds", 0], "seeds: got 0"),
        (["--target", night, "--shots", 3, "--seeds", 10**6], "seeds: got 1000000; allowed: a whole number of draws"),
        (["--target", night, "--shots", 3, "--steps", 2, "--set", "steps=3"], "--steps: given together with --set"),
        (["--target", night, "--shots", 3, "--method", "fda"], "method: 'fda' is not known, did you mean 'fada'?"),
        (
            ["--target", night, "--shots", 3, "--set", "epoch=3"],
            "setting: 'epoch' is not known, did you mean 'epochs'?",
        ),
        (["--target", night, "--shots", 3, "--source", site / "night"], "source: other images than the 380"),
        (["--target", "night=", "--shots", 3], "--target: got 'night='; allowed: NAME=DIR"),
        (["--target", "usp", "--shots", 3], "--target: 'usp' is not known, did you mean 'usps'?"),
        (["--target", "uci", "--shots", 3], "--target: digits-lite has no training images of uci"),
        (["--target", "svhn-style", "--shots", 3, "--test", "x"], "--test: given, while svhn-style has test images"),
        (["--target", "svhn-style", "--shots", 3], "svhn-style: has the 10 classes"),
        (["--target", f"strange={tmp_path / 'strange'}", "--shots", 1], "class: 'truck' is not known"),
        (["--shots", 3], "Missing option '--target'"),
    ]:
        code, out, error = onedomain("adapt", site / "run", *given, "--out", tmp_path / "b")
        assert code == 2, given
        assert message in error
        assert error.count("\n") == 1
        assert out == ""
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    code, _, error = onedomain(
        "adapt", site / "run", "--target", f"cats={tmp_path / 'cats'}", "--shots", 2, "--steps", 2, "--out", "c"
    )
    assert code == 0
    assert "cats has no drawn image of class dog: nothing of it was learned there" in error


@pytest.fixture
def small_benchmark(monkeypatch):
    """`digits-lite` with fewer images to train on and to score."""
    whole = BENCHMARKS["digits-lite"]

    def some(load):
        return lambda data: (domain := load(data)).subset(np.arange(0, len(domain), len(domain) // 60))

    changed = {name: some(getattr(whole, name)) for name in ("train", "held_out", "calibration")}
    changed["targets"] = {name: some(load) for name, load in whole.targets.items()}
    monkeypatch.setitem(BENCHMARKS, "digits-lite", replace(whole, **changed))


@pytest.mark.usefixtures("small_benchmark")
def test_a_benchmarks_target_is_drawn_from_its_training_images(onedomain, tmp_path):
    train = ["train", "--benchmark", "digits-lite", "--steps", 2, "--no-evaluate", "--threads", 1]
    assert onedomain(*train, "--out", tmp_path / "a")[0] == 0
    code, out, _ = onedomain("adapt", tmp_path / "a", "--target", "svhn-style", "--shots", 7, "--steps", 2, "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["benchmark"], told["split"], told["missing"]) == ("digits-lite", "train", [])
    assert [(name, row["split"], row["source"]) for name, row in told["domains"].items()] == [
        ("svhn-style", "test", False),
        ("mnist", "validation", True),
    ]
    folder = tmp_path / "a-svhn-style-fine-tune-7"
    assert told["draws"][0]["run"] == str(folder)
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {(row["benchmark"], row["domain"], row["unseen"]) for row in records} == {
        ("digits-lite", "svhn-style", False),
        ("digits-lite", "mnist", False),
    }
    # Scored like any run, what it was adapted to no longer counts as unseen.
    code, out, _ = onedomain("evaluate", folder, "--json", "--threads", 1)
    unseen = {name for name, row in json.loads(out)["domains"].items() if row["unseen"]}
    assert unseen == {"uci", "mnist-m-blend", "syn-rendered"}


@pytest.mark.usefixtures("small_benchmark")
def test_copies_of_images_that_the_run_learned_are_no_target(onedomain, tmp_path, monkeypatch):
    train = ["train", "--benchmark", "digits-lite", "--steps", 1, "--no-evaluate", "--threads", 1]
    assert onedomain(*train, "--out", tmp_path / "a")[0] == 0
    seen = replace(BENCHMARKS["digits-shifted"], trained_on_by=("digits-lite",))
    monkeypatch.setitem(BENCHMARKS, "digits-shifted", seen)
    code, _, error = onedomain("adapt", tmp_path / "a", "--target", "coloured", "--shots", 7)
    assert code == 2
    assert "--target coloured of digits-shifted: its digits are among the training images of a digits-lite run" in error
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
