from __future__ import annotations

import itertools
from statistics import stdev

import pytest

from onedomain.reporting.figures.declare import Missing
from onedomain.reporting.figures.domains import (
    LETTER,
    LINE,
    accuracy,
    accuracy_and_flags,
    accuracy_and_uncertainty,
    place_labels,
)
from onedomain.runs.records import read_run
from tests.reporting.figures.made import make_run
from tests.reporting.page.made import made_run


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


def test_each_domain_is_a_point_of_score_and_accuracy(tmp_path):
    accuracies, scores = {"s": 0.9, "x": 0.6, "y": 0.5, "z": 0.1}, {"s": 1.0, "x": 2.0, "y": 4.0, "z": 3.0}
    make_run(tmp_path / "a", accuracies=accuracies, scores=scores)
    make_run(tmp_path / "b", "ccsa")
    (axes,) = accuracy_and_uncertainty([read_run(tmp_path / name) for name in "ab"], "bench").axes
    source, unseen = axes.get_lines()
    assert source.get_xydata().tolist() == [[1.0, 0.9]]
    assert unseen.get_xydata().tolist() == [[2.0, 0.6], [4.0, 0.5], [3.0, 0.1]]
    assert source.get_marker() != unseen.get_marker()
    assert axes.get_title() == "ERM\nrank correlation 0.50"  # ranks 1, 3, 2 against 1, 2, 3
    named = {text.get_text(): text.xy for text in axes.texts}
    assert named == {domain: (scores[domain], accuracies[domain]) for domain in scores}


def test_of_many_domains_the_outermost_are_named(tmp_path):
    accuracies = {f"x{number}": number / 20 for number in range(15)}
    make_run(tmp_path / "a", accuracies=accuracies, scores={name: 1 - value for name, value in accuracies.items()})
    (axes,) = accuracy_and_uncertainty([read_run(tmp_path / "a")], "bench").axes
    assert {text.get_text() for text in axes.texts} == {"x0", "x1", "x2", "x14"}


def test_a_run_scored_on_its_source_alone_is_drawn(tmp_path):
    make_run(tmp_path / "a", accuracies={"s": 0.9}, scores={"s": 1.0})
    run = read_run(tmp_path / "a")
    (axes,) = accuracy_and_uncertainty([run], "bench").axes
    assert axes.get_title() == "ERM"
    (axes,) = accuracy([run], "bench").axes
    assert axes.containers[0][0].get_xdata() == pytest.approx([0.9])


def test_without_a_domain_score_it_says_so(tmp_path):
    make_run(tmp_path / "a")
    with pytest.raises(Missing, match="no run has a domain score"):
        accuracy_and_uncertainty([read_run(tmp_path / "a")], "bench")


def test_points_stand_where_flagged_and_accuracy_put_them():
    run = made_run({"home": 1.0, "far": 0.25}, flagged={"home": 0.0, "far": 0.5})
    (axes,) = accuracy_and_flags([run], "bench").axes
    source, unseen = axes.get_lines()
    assert source.get_xydata().tolist() == [[0.0, 1.0]]
    assert unseen.get_xydata().tolist() == [[0.5, 0.25]]
    [shaded] = axes.patches  # where more are wrong than flagged
    assert shaded.get_xy()[:3].tolist() == [[0, 1], [0, 0], [1, 0]]


def test_a_long_name_is_cut():
    name = "an-unusually-long-name-of-a-domain"
    (axes,) = accuracy_and_flags([made_run({name: 0.5}, flagged={name: 0.9})], "bench").axes
    assert [text.get_text() for text in axes.texts] == ["an-unusually-long-name…"]


def test_plain_training_is_among_the_methods_that_are_drawn():
    methods = {"sdg": 0.9, "gud": 0.8, "ccsa": 0.7, "jigen": 0.6, "d-sne": 0.55, "augmix": 0.5, "erm": 0.4}
    runs = [made_run({"a": value}, method, flagged={"a": 0.5}) for method, value in methods.items()]
    figure = accuracy_and_flags(runs, "bench")
    assert [axes.get_title() for axes in figure.axes] == ["SDG", "GUD", "CCSA", "JiGen", "d-SNE", "ERM"]
    assert figure.get_supxlabel().endswith("not drawn, for 6 panels are the most: AugMix")


def test_names_lie_neither_on_each_other_nor_outside():
    names, points = [f"domain-{letter}" for letter in "abcdefg"], [(295.0, 2.0)] * 7
    moves = place_labels(points, names, 300.0, 110.0)
    heights = [2.0 + y for _, y in moves]
    for one, other in itertools.combinations(heights, 2):
        assert abs(one - other) >= LINE
    for (x, _), name, height in zip(moves, names, heights, strict=True):
        assert 0 <= 295.0 + x - LETTER * len(name) < 295.0 + x <= 300.0
        assert 0 < height <= 110.0


def test_names_of_a_crowd_keep_the_order_of_their_points():
    values = {"a": 26.0, "b": 14.0, "c": 14.0, "d": 7.0}
    moves = place_labels([(10.0, y) for y in values.values()], list(values), 300.0, 100.0)
    a, b, c, d = (y + move for y, (_, move) in zip(values.values(), moves, strict=True))
    assert a > b > c > d > 0
