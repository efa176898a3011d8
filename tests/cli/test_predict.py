from __future__ import annotations

import json
import re

import numpy as np
import pytest
from PIL import Image


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


def test_names_are_shown_as_they_are(trained, onedomain, tmp_path):
    file = tmp_path / "b[bold]:smile:[x].png"
    Image.new("L", (9, 9)).save(file)
    code, out, _ = onedomain("predict", trained[0], file)
    assert code == 0
    column = "".join(re.sub(r"  .*", "", line.strip()) for line in out.splitlines())  # a long name is folded
    assert "b[bold]:smile:[x].png" in column
