from __future__ import annotations

import numpy as np
import pytest

from onedomain.reporting.figures.declare import Missing
from onedomain.reporting.figures.over_training import augmented_images
from onedomain.runs.records import read_run
from onedomain.runs.samples import mosaic
from tests.reporting.figures.made import full_run, make_run


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
