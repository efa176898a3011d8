from __future__ import annotations

import itertools

from onedomain.reporting.comparison import compare
from onedomain.reporting.page.picture import BOTTOM, LEFT, LINE, RIGHT, TOP, panels
from tests.reporting.page.made import made_run


def test_points_stand_where_flagged_and_accuracy_put_them():
    run = made_run({"home": 1.0, "far": 0.25}, flagged={"home": 0.0, "far": 0.5})
    [panel] = panels(compare([run], "bench"))
    points = {point.domain: point for point in panel.points}
    assert (points["home"].x, points["home"].y) == (LEFT, TOP)
    assert (points["far"].x, points["far"].y) == ((LEFT + RIGHT) / 2, TOP + 0.75 * (BOTTOM - TOP))
    assert not points["home"].unseen
    assert "far 25% right, 50% flagged" in panel.text


def test_labels_lie_neither_on_each_other_nor_outside():
    names = [f"domain-{letter}" for letter in "abcdefg"]
    run = made_run(dict.fromkeys(names, 0.02), flagged=dict.fromkeys(names, 1.0))
    [panel] = panels(compare([run], "bench"))
    for one, other in itertools.combinations(panel.labels, 2):
        assert abs(one.y - other.y) >= LINE
    for label in panel.labels:
        assert label.x == label.right
        assert LEFT <= label.left < label.right <= RIGHT
        assert TOP <= label.y < BOTTOM
        assert label.to_the_left


def test_labels_of_a_crowd_keep_the_order_of_their_points():
    values = {"a": 0.26, "b": 0.14, "c": 0.14, "d": 0.07}
    [panel] = panels(compare([made_run(values, flagged=dict.fromkeys(values, 1.0))], "bench"))
    heights = {text: label.y for text, label in zip(panel.texts, panel.labels, strict=True)}
    assert heights["a"] < heights["b"] < heights["c"] < heights["d"] < BOTTOM


def test_a_long_name_is_cut_in_the_picture_and_whole_beside_it():
    name = "an-unusually-long-name-of-a-domain"
    [panel] = panels(compare([made_run({name: 0.5}, flagged={name: 0.9})], "bench"))
    assert panel.texts == ["an-unusually-long-name-…"]
    assert panel.labels[0].left > LEFT
    assert name in panel.text


def test_many_domains_are_points_without_labels_and_no_calibration_is_no_panel():
    names = [f"d{number}" for number in range(30)]
    run = made_run(dict.fromkeys(names, 0.5), flagged=dict.fromkeys(names, 0.5))
    [panel] = panels(compare([run, made_run(dict.fromkeys(names, 0.5), "sdg")], "bench"))
    assert panel.title == "ERM"
    assert panel.labels == []
    assert len(panel.points) == 30


def test_plain_training_is_among_the_panels_in_sight():
    methods = {"sdg": 0.9, "gud": 0.8, "ccsa": 0.7, "jigen": 0.6, "erm": 0.5}
    runs = [made_run({"a": value}, method, flagged={"a": 0.5}) for method, value in methods.items()]
    assert [panel.title for panel in panels(compare(runs, "bench"))] == ["SDG", "GUD", "ERM", "CCSA", "JiGen"]
