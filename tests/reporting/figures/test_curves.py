from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onedomain.reporting.figures.curves import settings_curves
from onedomain.reporting.figures.declare import Missing
from onedomain.runs.records import read_run
from tests.reporting.figures.made import make_run


def test_runs_that_differ_in_one_setting_make_a_curve(tmp_path):
    values = {1: (0.3, 0.5), 3: (0.6, 0.6), 5: (0.5, 0.1)}
    for domains, accuracies in values.items():
        for seed, value in enumerate(accuracies):
            make_run(
                tmp_path / f"k{domains}-{seed}", "sdg", seed, {"domains": domains}, {"s": 0.9, "x": value, "y": 0.2}
            )
    make_run(tmp_path / "b0", "sdg", 0, {"beta": 0.0}, {"s": 0.9, "x": 0.1, "y": 0.1})
    make_run(tmp_path / "other", "sdg", 0, {"domains": 9, "steps": 7}, {"s": 0.9, "x": 0.9, "y": 0.9})
    make_run(tmp_path / "erm", "erm")
    runs = [read_run(folder) for folder in sorted(tmp_path.iterdir())]
    over_k, over_beta = settings_curves(runs, "bench").axes
    assert over_k.get_xlabel() == "K, domains made"
    assert [text.get_text() for text in over_k.get_xticklabels()] == ["1", "3", "5"]
    (curve,) = over_k.containers
    assert curve[0].get_ydata() == pytest.approx([0.3, 0.4, 0.25])  # means over x and y, then over seeds
    (whiskers,) = curve[2]
    assert np.diff(whiskers.get_segments()[0][:, 1]) == pytest.approx(2 * np.std([0.25, 0.35], ddof=1))
    assert [text.get_text() for text in over_beta.get_xticklabels()] == ["0", "2000"]
    assert over_beta.containers[0][0].get_ydata() == pytest.approx([0.1, 0.4])
    for axes in (over_k, over_beta):  # a line from top to bottom at the default: 3 domains, β = 2,000
        assert [list(line.get_xdata()) for line in axes.get_lines() if list(line.get_ydata()) == [0, 1]] == [[1, 1]]


def test_without_such_runs_it_says_so(tmp_path):
    make_run(tmp_path / "a", "sdg")
    make_run(tmp_path / "b", "sdg", 0, {"alpha": 0.5, "steps": 9})
    make_run(tmp_path / "c", "sdg", 0, {"alpha": 0.5})
    a, b, c = (read_run(tmp_path / name) for name in "abc")
    source = c.manifest.source.model_copy(update={"fingerprint": "of other images"})
    elsewhere = replace(c, manifest=c.manifest.model_copy(update={"source": source}))
    for other in (b, elsewhere):
        with pytest.raises(Missing, match="needs runs of sdg that differ in domains, alpha or beta alone"):
            settings_curves([a, other], "bench")
    assert settings_curves([a, c], "bench").axes
