from __future__ import annotations

from statistics import stdev

import pytest

from onedomain.reporting.figures.domains import accuracy
from onedomain.runs.records import read_run
from tests.reporting.figures.made import make_run


def test_each_domain_has_a_row_and_each_method_a_marker_with_its_deviation(tmp_path):
    make_run(tmp_path / "a", "erm", 0, accuracies={"s": 0.9, "x": 0.4, "y": 0.2})
    make_run(tmp_path / "b", "erm", 1, accuracies={"s": 0.9, "x": 0.6, "y": 0.4})
    make_run(tmp_path / "c", "ccsa", 0, accuracies={"s": 0.8, "x": 0.7, "y": 0.5})
    (axes,) = accuracy([read_run(tmp_path / name) for name in "abc"], "bench").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["s (source)", "x", "y", "average unseen"]
    erm, ccsa = axes.containers
    assert erm.get_label() == "ERM"
    assert erm[0].get_xdata() == pytest.approx([0.9, 0.5, 0.3, 0.4])
    assert ccsa[0].get_xdata() == pytest.approx([0.8, 0.7, 0.5, 0.6])
    spread = stdev([0.4, 0.6])
    (whiskers,) = erm[2]
    assert whiskers.get_segments()[1][:, 0] == pytest.approx([0.5 - spread, 0.5 + spread])
    (single,) = ccsa[2]  # of one seed: the interval of the record
    assert single.get_segments()[1][:, 0] == pytest.approx([0.6, 0.75])
    rows = erm[0].get_ydata()
    assert all(abs(row - place) < 0.5 for place, row in enumerate(rows))
    assert not set(rows) & set(ccsa[0].get_ydata())


def test_an_interval_that_misses_its_value_by_a_last_digit_is_drawn(tmp_path):
    folder = make_run(tmp_path / "a", accuracies={"s": 0.9, "x": 0.5})
    path = folder / "results.jsonl"
    path.write_text(path.read_text().replace('"low": 0.4', '"low": 0.50000001'))
    (axes,) = accuracy([read_run(folder)], "bench").axes
    (whiskers,) = axes.containers[0][2]
    assert whiskers.get_segments()[1][:, 0] == pytest.approx([0.5, 0.55])


def test_a_run_scored_on_its_source_alone_is_drawn(tmp_path):
    make_run(tmp_path / "a", accuracies={"s": 0.9})
    (axes,) = accuracy([read_run(tmp_path / "a")], "bench").axes
    assert axes.containers[0][0].get_xdata() == pytest.approx([0.9])
