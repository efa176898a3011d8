from __future__ import annotations

import numpy as np
import pytest

from onedomain.figures.ingredients import Missing
from onedomain.figures.pictures import augmented_images, mosaic
from onedomain.records import read_run
from onedomain.samples import AugmentedSample
from tests.figures.made import full_run, make_run


def sample(count, labels, origins, channels=3):
    images = np.zeros((count, 4, 5, channels), np.uint8)
    images += np.arange(count, dtype=np.uint8)[:, None, None, None]
    return AugmentedSample("augmented-1", images, images + 100, np.array(labels), np.array(origins))


def test_originals_stand_above_what_became_of_them():
    pixels = mosaic(sample(3, [2, 0, 1], [0, 0, 0]))
    assert pixels.shape == (2 * 4 + 2, 8 * 7 - 2, 3)
    columns = [pixels[:, 7 * place : 7 * place + 5] for place in range(3)]
    assert [column[0, 0, 0] for column in columns] == [1, 2, 0]  # by class
    assert [column[-1, 0, 0] for column in columns] == [101, 102, 100]
    assert (pixels[4:6] == 255).all()
    assert (pixels[:, 5:7] == 255).all()


def test_images_of_the_source_and_of_all_classes_are_preferred():
    pixels = mosaic(sample(12, [0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    shown = [int(pixels[0, 7 * place, 0]) for place in range(8)]
    assert shown == [0, 3, 5, 2, 4, 6, 8, 7]
    assert mosaic(sample(3, [0, 1, 2], [1, 1, 1]))[0, 0, 0] == 0
    assert mosaic(sample(3, [], [0, 0, 0], channels=2)).shape[2] == 1


def test_every_domain_has_its_rows(tmp_path):
    run = full_run(tmp_path / "a", "sdg")
    figure = augmented_images([run], "bench")
    assert [axes.get_title(loc="left").split(":")[0] for axes in figure.axes] == ["augmented-1", "augmented-2"]
    shown = figure.axes[0].images[0].get_array()
    assert np.array_equal(shown, mosaic(run.augmented()[0]).squeeze())


def test_a_method_that_makes_none_is_told(tmp_path):
    make_run(tmp_path / "a")
    with pytest.raises(Missing, match="makes no images"):
        augmented_images([read_run(tmp_path / "a")], "bench")
