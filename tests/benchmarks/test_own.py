"""A benchmark that a user declares in a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onedomain as od
from onedomain.benchmarks import BENCHMARKS

MINE = """
import numpy as np
import onedomain as od
from onedomain.data.domain import Domain

def noise(name, seed, bright):
    rng = np.random.default_rng(seed)
    labels = np.arange(60) % 2
    images = rng.integers(0, 60, (60, 32, 32, 3)) + bright * labels[:, None, None, None]
    return Domain(name, "all", images.astype(np.uint8), labels, ("dark", "bright"))

day = od.Benchmark(
    name="day-to-night",
    train=lambda data: noise("day", 0, 150),
    targets={"night": lambda data: noise("night", 1, 80)},
    source="day",
    recipe={"steps": 4, "batch_size": 8},
)
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    yield path
    BENCHMARKS.pop("day-to-night", None)


def test_it_is_trained_and_scored_like_any_other(mine, onedomain, tmp_path):
    code, out, error = onedomain("train", "--benchmark", mine, "--out", tmp_path / "run", "--threads", 1, "--json")
    assert code == 0, error
    scored = json.loads(out)
    assert (scored["benchmark"], scored["steps"], list(scored["domains"])) == ("day-to-night", 4, ["night"])
    assert scored["domains"]["night"]["unseen"]


def test_a_run_on_it_is_scored_again_with_its_file(mine, onedomain, tmp_path):
    onedomain("train", "--benchmark", mine, "--out", tmp_path / "run", "--threads", 1, "--json")
    del BENCHMARKS["day-to-night"]  # as in another process
    code, _, error = onedomain("evaluate", tmp_path / "run")
    assert code == 2
    assert "benchmark: 'day-to-night' is not known" in error
    assert "FILE.py" in error
    assert onedomain("evaluate", tmp_path / "run", "--benchmark", mine)[0] == 0


def test_no_run_folder_chooses_a_file_that_is_run(tmp_path, monkeypatch, onedomain):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3)).astype(np.uint8)
    od.fit(od.ERM(steps=1), (images, np.arange(20) % 2), out="sent", progress=False)
    (tmp_path / "sent" / "evil.py").write_text("open('done', 'w')\n")
    manifest = tmp_path / "sent" / "run.yaml"
    content = manifest.read_text()
    assert "benchmark: null" in content
    manifest.write_text(content.replace("benchmark: null", "benchmark: sent/evil.py"))
    for words in (("evaluate", "sent"), ("train", "--resume", "--out", "sent")):
        code, _, error = onedomain(*words)
        assert (code, "'sent/evil.py' is not known" in error) == (2, True)
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x = 1", "declares none; allowed: a file with an od.Benchmark"),
        ("import nothing_of_this_name", "ends in ModuleNotFoundError"),
        (MINE + "other = od.Benchmark(name='other', train=day.train, targets=day.targets)", "declares 2; allowed: "),
        (MINE.replace("day-to-night", "digits"), "calls its own 'digits', which there is already"),
    ],
)
def test_a_file_that_declares_no_one_benchmark_is_refused_in_a_line(content, said, onedomain, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(content)
    code, out, error = onedomain("train", "--benchmark", path, "--out", tmp_path / "run")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert said in error
    assert not (tmp_path / "run").exists()


def test_of_several_in_a_file_one_is_chosen_by_name(mine, onedomain, tmp_path):
    mine.write_text(MINE + "other = od.Benchmark(name='other', train=day.train, targets=day.targets)")
    chosen = onedomain("train", "--benchmark", f"{mine}:day-to-night", "--out", tmp_path / "a", "--threads", 1)
    missing = onedomain("train", "--benchmark", f"{mine}:day-to-nigth", "--out", tmp_path / "b")
    assert (chosen[0], missing[0]) == (0, 2)
    assert "did you mean 'day-to-night'?" in missing[2]
    BENCHMARKS.pop("other", None)
