from __future__ import annotations

import numpy as np
import pytest

from onedomain.reporting.figures.declare import Missing
from onedomain.reporting.figures.embedding import core, domains, hull, hulls, inside, project
from onedomain.runs.records import read_run
from tests.reporting.figures.made import add_augmented, full_run, make_run

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])


def test_a_hull_has_the_outermost_points_as_corners():
    points = np.concatenate([SQUARE, [[2.0, 2.0], [1.0, 3.0]]])
    corners = hull(points)
    assert {tuple(corner) for corner in corners} == {tuple(corner) for corner in SQUARE}
    around = np.roll(corners, -1, axis=0) - corners
    assert (np.abs(around).sum(1) == 4).all()  # neighbours are neighbours
    assert hull(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])) is None
    assert hull(SQUARE[:2]) is None


def test_the_share_inside_counts_a_point_once():
    shifted = SQUARE + np.array([2.0, 0.0])
    points = np.array([[1.0, 1.0], [3.0, 1.0], [5.0, 1.0], [9.0, 9.0]])
    assert inside(points, [SQUARE]) == 0.5
    assert inside(points, [SQUARE, shifted]) == 0.75


def test_what_lies_far_out_does_not_stretch_a_hull():
    points = np.concatenate([np.random.default_rng(0).normal(size=(19, 2)), [[100.0, 100.0]]])
    assert np.abs(core(points)).max() < 10
    assert len(core(points)) == 18


def test_hulls_are_of_classes_where_these_are_known_and_few():
    rng = np.random.default_rng(0)
    points = {"source": rng.normal(size=(60, 2)), "augmented": rng.normal(size=(60, 2)) * 3}
    classes = np.arange(60) % 3
    found = hulls(points, {"source": classes, "augmented": classes})
    assert {name: len(each) for name, each in found.items()} == {"hulls of S": 3, "hulls of S ∪ S⁺": 3}
    assert {name: len(each) for name, each in hulls(points, {"source": classes}).items()} == {
        "hulls of S": 1,
        "hulls of S ∪ S⁺": 1,
    }
    everywhere = rng.uniform(-9, 9, (4000, 2))
    without, with_it = (inside(everywhere, each) for each in found.values())
    assert 0 < without < with_it
    assert list(hulls({"source": points["source"]}, {})) == ["hulls of S"]
    assert len(hulls(points, dict.fromkeys(points, np.arange(60)))["hulls of S"]) == 1


def test_the_projection_keeps_neighbours_together_and_is_the_same_each_time():
    rng = np.random.default_rng(0)
    kinds = {"source": rng.normal(size=(30, 16)), "unseen": rng.normal(size=(25, 16)) + 20}
    once, again = project(kinds), project(kinds)
    assert {kind: points.shape for kind, points in once.items()} == {"source": (30, 2), "unseen": (25, 2)}
    for kind in kinds:
        assert np.array_equal(once[kind], again[kind])
    gap = np.linalg.norm(once["source"].mean(0) - once["unseen"].mean(0))
    assert gap > 2 * max(points.std() for points in once.values())


def test_embeddings_that_are_all_the_same_or_a_single_number_can_be_drawn():
    dead = project({"source": np.zeros((9, 4)), "unseen": np.zeros((6, 4))})
    assert not dead["source"].any()
    assert hulls(dead, {}) == {}
    single = project({"source": np.arange(9.0)[:, None], "unseen": np.arange(6.0)[:, None]})
    assert np.isfinite(single["unseen"]).all()


def test_sdg_without_and_with_relaxation_stand_side_by_side(tmp_path):
    runs = [
        full_run(tmp_path / "erm", "erm"),
        full_run(tmp_path / "with", "sdg"),
        full_run(tmp_path / "without", "sdg", settings={"beta": 0.0}),
        full_run(tmp_path / "u", "uncertain-sdg"),
    ]
    figure = domains(runs, "bench")
    titles = [axes.get_title().split("\nunseen")[0] for axes in figure.axes]
    assert titles == ["SDG, beta=0\nwithout L_relax", "SDG\nwith L_relax", "Uncertain SDG", "ERM"]
    counts = {line.get_label(): len(line.get_xydata()) for line in figure.axes[0].get_lines()}
    assert counts["source S"] == 20
    assert counts["augmented S⁺"] == 40
    assert counts["unseen"] == 60
    assert {line.get_label() for line in figure.axes[3].get_lines()} == {"source S", "unseen", "hulls of S"}
    markers = {line.get_marker() for line in figure.axes[0].get_lines() if line.get_marker() != "None"}
    assert len(markers) == 3


def test_the_outline_goes_round_every_hull(tmp_path):
    run = full_run(tmp_path / "a", "sdg")
    (axes,) = domains([run], "bench").axes
    points = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    classes = np.arange(20) % 3
    expected = hulls({"source": points["source S"]}, {"source": classes})["hulls of S"]
    outline = points["hulls of S"]
    breaks = np.flatnonzero(np.isnan(outline[:, 0]))
    assert len(breaks) == 3
    assert np.array_equal(outline[: breaks[0] - 1], expected[0])
    assert np.array_equal(outline[breaks[0] - 1], expected[0][0])


def test_without_embeddings_it_says_so(tmp_path):
    make_run(tmp_path / "a", "sdg")
    add_augmented(tmp_path / "a", 1)
    with pytest.raises(Missing, match="needs embeddings of the source and of unseen domains"):
        domains([read_run(tmp_path / "a")], "bench")
