"""Commands on a folder of one's own images."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from PIL import Image

from onedomain.methods.erm import ERM

NOT_HELD_OUT = "note: no source images were held out"


@pytest.fixture
def pets(tmp_path):
    """A folder of eight images."""
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for number in range(4):
            pixels = rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / label / f"{number}.png")
    return tmp_path / "pets"


def test_images_of_ones_own_are_trained_on(pets, onedomain, tmp_path):
    run = tmp_path / "run"
    code, _, error = onedomain("train", "--source", pets, "--size", "20x20", "--steps", 2, "--out", run)
    assert code == 0
    assert "note: none of so few images was held out" in error
    code, out, _ = onedomain("predict", run, pets / "cat" / "0.png", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["predictions"][0]["label"] in ("cat", "dog")
    assert (said["calibration"]["images"], said["calibration"]["held_out"]) == (8, False)
    assert NOT_HELD_OUT in onedomain("predict", run, pets / "cat" / "0.png")[2]
    assert NOT_HELD_OUT in onedomain("evaluate", run, "--on", f"pets={pets}")[2]
    code, out, _ = onedomain("evaluate", run, "--on", f"pets={pets}", "--on", f"b={pets}", "--seen", "pets", "--json")
    assert {name: each["unseen"] for name, each in json.loads(out)["domains"].items()} == {"pets": False, "b": True}
    assert len(json.loads(onedomain("predict", run, pets, "--json")[1])["predictions"]) == 8
    code, _, error = onedomain("evaluate", run)
    assert code == 2
    assert "--on: not given" in error
    (tmp_path / "broken.png").write_bytes(b"no image")
    code, _, error = onedomain("predict", run, tmp_path / "broken.png")
    assert code == 2
    assert "broken.png: cannot be read" in error


def test_more_images_of_the_source_are_scored_as_seen(pets, onedomain, tmp_path):
    given = "train", "--source", pets, "--size", "20x20", "--steps", 2, "--out", tmp_path / "run"
    code, out, _ = onedomain(*given, "--held-out", pets, "--json")
    assert code == 0
    [(name, scores)] = json.loads(out)["domains"].items()
    assert (name, scores["unseen"], scores["count"], scores["split"]) == ("source", False, 8, "held out")
    assert onedomain("train", "--held-out", pets)[2].startswith("onedomain: --held-out: given without --source")


def test_stopped_it_says_how_to_go_on_with_all_that_the_last_bits_depend_on(pets, onedomain, tmp_path, monkeypatch):
    given = ["train", "--source", pets, "--steps", 5, "--threads", 1, "--device", "cpu", "--data", tmp_path]
    assert onedomain(*given, "--out", tmp_path / "whole")[0] == 0
    done, original = 0, ERM.step

    def stopped(self, batch, step):
        nonlocal done
        done += 1
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, batch, step)

    monkeypatch.setattr(ERM, "step", stopped)
    code, _, error = onedomain(*given, "--out", tmp_path / "stopped")
    assert code == 130
    again = error.split("go on with: onedomain ")[1]
    for option in (f"--source {pets}", f"--data {tmp_path}", "--device cpu", "--threads 1"):
        assert option in again
    assert onedomain(*again.split())[0] == 0
    weights = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "stopped")]
    assert weights[0] == weights[1]
