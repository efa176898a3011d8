from __future__ import annotations

import numpy as np
import pytest

from onedomain.reporting.figures.declare import Missing
from onedomain.reporting.figures.over_training import (
    augmented_images,
    carried,
    embedding_over_training,
    mixed_labels,
    of_true_class,
    perturbation,
    perturbation_maps,
)
from onedomain.runs.records import read_run
from onedomain.runs.samples import Snapshot, mosaic
from tests.reporting.figures.made import add_snapshot, full_run, make_run


@pytest.fixture
def pair(tmp_path):
    """The same run with and without learned uncertainty."""
    return [
        full_run(tmp_path / str(with_it), "uncertain-sdg", settings={"uncertainty": with_it})
        for with_it in (True, False)
    ]


def test_the_perturbation_is_drawn_over_the_steps(pair):
    strength, transport = perturbation(pair, "bench").axes
    without, with_it = strength.get_lines()
    assert (without.get_label(), with_it.get_label()) == ("without uncertainty", "with uncertainty")
    assert with_it.get_xydata() == pytest.approx(np.array([[10, 1.0], [20, 2.0], [40, 4.0]]))
    moments = pair[0].snapshots()
    assert transport.get_lines()[1].get_ydata() == pytest.approx([carried(moment) for moment in moments])


def test_the_band_around_the_perturbation_holds_half_of_the_images(tmp_path):
    make_run(tmp_path / "a", "uncertain-sdg")
    for step in (10, 20):
        add_snapshot(tmp_path / "a", step, perturbation=np.repeat(np.arange(5, dtype=np.float32)[:, None], 2, 1))
    (band,) = perturbation([read_run(tmp_path / "a")], "bench").axes[0].collections
    assert set(band.get_paths()[0].vertices[:, 1]) == {1.0, 3.0}


def test_how_far_images_are_carried_is_measured_by_their_spread():
    z = np.array([[0.0, 0.0], [2.0, 0.0]])  # each 1 from the centre
    assert carried(Snapshot(0, {"embedding": z, "perturbed_embedding": z + np.array([0.0, 3.0])})) == pytest.approx(3.0)


def test_the_true_class_of_every_draw():
    mixed = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1], [0.2, 0.8]])  # two draws of two images
    arrays = {"mixed_labels": mixed, "labels": np.array([0, 1])}
    assert of_true_class(Snapshot(0, arrays)).tolist() == [0.7, 0.6, 0.9, 0.8]
    assert of_true_class(Snapshot(0, arrays | {"labels": np.zeros(0, int)})).tolist() == [0.7, 0.6, 0.9, 0.8]


def test_the_density_of_mixed_labels_with_and_without_uncertainty(tmp_path):
    for name, values in (("with", [0.55, 0.95, 0.95, 0.95]), ("without", [0.95] * 4)):
        make_run(tmp_path / name, "uncertain-sdg", settings={"uncertainty": name == "with"})
        mixed = np.array([[value, 1 - value, 0.0] for value in values], np.float32)
        add_snapshot(tmp_path / name, 5, mixed_labels=mixed, labels=np.zeros(4, np.int64))
    (axes,) = mixed_labels([read_run(tmp_path / name) for name in ("with", "without")], "bench").axes
    without, with_it = axes.patches
    assert [patch.get_label() for patch in (without, with_it)] == ["without uncertainty", "with uncertainty"]
    density, edges, _ = with_it.get_data()
    assert (edges[0], edges[-1]) == (0.5, 1.0)
    shares = density * np.diff(edges)
    assert shares.sum() == pytest.approx(1)
    assert shares[(edges[:-1] <= 0.55) & (edges[1:] > 0.55)] == pytest.approx(0.25)
    assert without.get_hatch() != with_it.get_hatch()


def test_of_a_single_run_the_first_and_the_last_moment_are_compared(tmp_path):
    run = full_run(tmp_path / "a", "uncertain-sdg")
    (axes,) = mixed_labels([run], "bench").axes
    assert [patch.get_label() for patch in axes.patches] == ["step 10", "step 40"]


def test_maps_stand_in_a_row_beside_their_image(pair):
    figure = perturbation_maps(pair, "bench")
    assert len(figure.axes) == 2 * 3 * 4  # runs, images, the image and three moments
    maps = np.stack([moment.arrays["perturbation_maps"] for moment in pair[1].snapshots()]).astype(np.float32)
    drawn = [axes.images[0] for place, axes in enumerate(figure.axes[:12]) if place % 4 > 0]
    assert np.array_equal(drawn[0].get_array(), maps[0, 0])
    assert {image.get_clim() for image in drawn} == {(maps.min(), maps.max())}  # so that moments compare
    assert [axes.get_title().strip() for axes in figure.axes[1:4]] == ["10", "20", "40"]


def test_the_embedding_is_drawn_at_several_moments(pair):
    figure = embedding_over_training(pair, "bench")
    titles = [axes.get_title().split("\n") for axes in figure.axes]
    assert titles[:2] == [["without uncertainty", "step 10"], ["with uncertainty", "step 10"]]
    assert len(titles) == 6
    counts = {line.get_label(): len(line.get_xydata()) for line in figure.axes[0].get_lines()}
    assert counts["source S"] == counts["augmented S⁺"] == 12


def test_of_many_moments_some_are_drawn_the_first_and_the_last_among_them(tmp_path):
    make_run(tmp_path / "a", "uncertain-sdg")
    for step in range(6):
        add_snapshot(tmp_path / "a", step)
    figure = embedding_over_training([read_run(tmp_path / "a")], "bench")
    assert [axes.get_title() for axes in figure.axes] == ["step 0", "step 2", "step 3", "step 5"]


def test_what_is_missing_is_said(tmp_path):
    make_run(tmp_path / "erm")
    for draw in (perturbation, perturbation_maps, embedding_over_training, mixed_labels):
        with pytest.raises(Missing, match="no run kept moments of its training"):
            draw([read_run(tmp_path / "erm")], "bench")


def test_every_augmented_domain_has_its_rows(tmp_path):
    run = full_run(tmp_path / "a", "sdg")
    figure = augmented_images([run], "bench")
    assert [axes.get_title(loc="left").split(":")[0] for axes in figure.axes] == ["augmented-1", "augmented-2"]
    shown = figure.axes[0].images[0].get_array()
    assert np.array_equal(shown, mosaic(run.augmented()[0]).squeeze())


def test_a_method_that_makes_none_is_told(tmp_path):
    make_run(tmp_path / "a")
    with pytest.raises(Missing, match="makes no images"):
        augmented_images([read_run(tmp_path / "a")], "bench")
