from __future__ import annotations

import numpy as np
import pytest

from onedomain.evaluation.gathering import Gathering
from onedomain.evaluation.scores import score
from onedomain.reporting.figures.calibration import reliability, reliability_bins, risk_coverage
from onedomain.reporting.figures.declare import Missing
from onedomain.runs.records import read_run
from tests.evaluation.test_scores import look_up, numbered
from tests.reporting.figures.made import add_outcome, make_run


def lines(axes, label):
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    return line.get_xydata()


def panel(figure, title):
    (axes,) = [axes for axes in figure.axes if axes.get_title() == title]
    return axes


def test_a_reliability_diagram_shows_confidence_and_accuracy_of_each_bin(tmp_path):
    make_run(tmp_path / "a")
    # 20 answers in the bin (0.4, 0.467], half of them right; 40 in (0.933, 1], all right; 3, too few, in (0.6, 0.667].
    confidence = np.array([0.42] * 10 + [0.46] * 10 + [0.95] * 40 + [0.65] * 3)
    predicted = np.zeros(63, np.int64)
    labels = np.array([0, 1] * 10 + [0] * 40 + [1] * 3)
    add_outcome(tmp_path / "a", "x", confidence=confidence, predicted=predicted, labels=labels)
    figure = reliability([read_run(tmp_path / "a")], "bench")
    assert lines(panel(figure, "x"), "ERM") == pytest.approx(np.array([[0.44, 0.5], [0.95, 1.0]]))


def test_images_without_an_answer_are_left_out(tmp_path):
    make_run(tmp_path / "a")
    nothing = np.full(20, np.nan)  # as images of void pixels alone
    confidence, right = np.append(np.full(20, 0.95), nothing), np.append(np.full(20, 0.5), nothing)
    add_outcome(tmp_path / "a", "x", confidence=confidence, shares_right=right, uncertainty=1 - confidence)
    runs = [read_run(tmp_path / "a")]
    assert lines(panel(reliability(runs, "bench"), "x"), "ERM") == pytest.approx(np.array([[0.95, 0.5]]))
    assert lines(panel(risk_coverage(runs, "bench"), "x"), "ERM")[:, 1] == pytest.approx([0.5] * 20)


def test_the_bins_are_those_of_the_ece():
    gathering = Gathering(numbered(np.tile(np.arange(3), 30)), unseen=True)

    def ask(images):
        return look_up((images * 255).round() % 7 / 255)

    scores = score(ask, gathering.domain, gathering=gathering)
    outcome = gathering.outcome()
    confidence, accuracy, count = reliability_bins(outcome.confidence.astype(float), outcome.right)
    assert count.sum() == 90
    assert (count / 90 * np.abs(confidence - accuracy)).sum() == pytest.approx(scores.ece, abs=1e-6)


def test_a_risk_coverage_curve_shows_the_error_of_the_most_certain(tmp_path):
    make_run(tmp_path / "a")
    uncertainty = np.array([0.3, 0.1, 0.2, 0.4])
    predicted = np.array([0, 1, 2, 0])
    labels = np.array([1, 1, 2, 1])  # by certainty: right, right, wrong, wrong
    add_outcome(tmp_path / "a", "x", uncertainty=uncertainty, predicted=predicted, labels=labels)
    figure = risk_coverage([read_run(tmp_path / "a")], "bench")
    expected = np.array([[0.25, 0.0], [0.5, 0.0], [0.75, 1 / 3], [1.0, 0.5]])
    assert lines(panel(figure, "x"), "ERM") == pytest.approx(expected)


def test_long_curves_are_thinned_and_keep_their_ends(tmp_path):
    make_run(tmp_path / "a")
    rng = np.random.default_rng(0)
    add_outcome(tmp_path / "a", "x", uncertainty=rng.random(5000), predicted=rng.integers(0, 3, 5000))
    drawn = lines(panel(risk_coverage([read_run(tmp_path / "a")], "bench"), "x"), "ERM")
    assert len(drawn) == 150
    assert drawn[0, 0] == pytest.approx(1 / 5000)
    assert drawn[-1, 0] == 1.0


def test_seeds_share_a_line_and_methods_do_not(tmp_path):
    for name, method, seed in (("a", "erm", 0), ("b", "erm", 1), ("c", "ccsa", 0)):
        make_run(tmp_path / name, method, seed=seed)
        add_outcome(tmp_path / name, "s", unseen=False, predicted=np.full(30, seed))
        add_outcome(tmp_path / name, "x")
    figure = reliability([read_run(tmp_path / name) for name in "abc"], "bench")
    source = panel(figure, "s (source)")
    assert lines(source, "ERM") == pytest.approx(np.array([[0.9, 1 / 3]]))  # of 60 answers 20 are right
    looks = {(line.get_marker(), line.get_linestyle()) for line in source.get_lines() if line.get_label()[0] != "_"}
    assert len(looks) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ERM", "CCSA"]


def test_many_domains_are_pooled_and_many_methods_get_a_panel_each(tmp_path):
    domains = ["s", *(f"x{number}" for number in range(9))]
    make_run(tmp_path / "a", accuracies=dict.fromkeys(domains, 0.5))
    for domain in domains:
        add_outcome(tmp_path / "a", domain, unseen=domain != "s")
    figure = reliability([read_run(tmp_path / "a")], "bench")
    assert [axes.get_title() for axes in figure.axes] == ["source", "9 unseen domains"]

    methods = ["erm", "ccsa", "d-sne", "jigen", "gud", "randconv"]
    for method in methods:
        make_run(tmp_path / method, method)
        add_outcome(tmp_path / method, "s", unseen=False)
        add_outcome(tmp_path / method, "x")
    figure = reliability([read_run(tmp_path / method) for method in methods], "bench")
    titles = ["ERM", "CCSA", "d-SNE", "JiGen", "GUD", "RandConv"]
    assert [axes.get_title() for axes in figure.axes] == titles


def test_without_answers_it_says_how_to_get_them(tmp_path):
    make_run(tmp_path / "a")
    with pytest.raises(Missing, match="no answers were kept; score the runs again: onedomain evaluate .*a --benchmark"):
        reliability([read_run(tmp_path / "a")], "bench")
