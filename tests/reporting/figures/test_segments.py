"""Figures of runs whose pixels have labels, from folders written by hand."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from onedomain.evaluation.masks import palette
from onedomain.reporting.figures import figures_for, segments
from onedomain.reporting.figures.declare import Missing
from onedomain.runs.outcomes import load_outcome
from onedomain.runs.records import read_run
from tests.reporting.figures.made import CLASSES, add_outcome, make_run

VOID = 3
TRUTH = np.array([[[0, 0, 1, VOID], [0, 0, 1, VOID]]] * 3, np.int16)
PREDICTED = TRUTH.clip(max=1)


def dense_run(folder, method="erm", miou=0.4, predicted=PREDICTED):
    """A run scored on `home`, its source, and on `dusk`; class c is at home alone."""
    make_run(folder, method, accuracies={"home": 0.9, "dusk": 0.8}, scores={"home": 1.0, "dusk": 2.0})
    manifest = folder / "run.yaml"
    manifest.write_text(manifest.read_text().replace("dense: false", "dense: true"))
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for domain in ("home", "dusk"):
        row = next(line for line in lines if line["domain"] == domain)
        common = {key: value for key, value in row.items() if key not in ("low", "high")}
        value = miou if domain == "dusk" else 0.6
        lines.append({**common, "metric": "miou", "value": value, "low": value - 0.2, "high": value + 0.1})
        for name, of_class in {"a": value, "b": value / 2, **({"c": 0.1} if domain == "home" else {})}.items():
            lines.append({**common, "metric": f"iou/{name}", "class": name, "value": of_class})
        add_outcome(
            folder, domain, unseen=domain != "home", confidence=np.full(5, 0.9), labels=None, predicted=None,
            shares_right=np.full(5, 0.75), void=VOID, mask_images=np.full((3, 2, 4, 3), 9, np.uint8),
            mask_truth=TRUTH, mask_predicted=predicted,
            mask_uncertainty=np.linspace(0, np.log(3), 24).reshape(3, 2, 4).astype(np.float16),
        )  # fmt: skip
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    wrong = np.full_like(TRUTH, 2)
    first = read_run(dense_run(tmp_path / "a", "uncertain-sdg", 0.5))
    return [first, read_run(dense_run(tmp_path / "b", predicted=wrong))]


def test_masks_are_in_the_colours_of_their_classes_and_void_is_marked(tmp_path):
    folder = dense_run(tmp_path / "a")
    outcome = load_outcome(folder / "outcomes" / "bench" / "dusk.safetensors")
    _, (said, right), (truth, _), (unsure, doubt) = segments.pictures([outcome], 0)
    red, green = palette(CLASSES)[0], palette(CLASSES)[1]
    assert truth[0, 0].tolist() == red.tolist()
    assert truth[0, 2].tolist() == green.tolist()
    assert {tuple(pixel) for pixel in truth[:, 3].tolist()} == {(205, 205, 205)}
    assert said[0, 2].tolist() == green.tolist()
    assert said[0, 3].min() > 170  # what is said of void is pale
    assert unsure.min() == 0
    assert segments.pictures([outcome], 2)[-1][0].max() == 255  # log(classes), clueless
    assert (right, doubt[-15:]) == ("75% of pixels right", " nats per pixel")


def test_a_row_of_pictures_for_each_image_of_an_unseen_domain(runs):
    figure = segments.masks(runs, "bench")
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == ["dusk", "dusk"]
    titles = [axes.get_title().replace("\n", " ") for axes in figure.axes if axes.get_title()]
    assert titles == ["image, truth", "Uncertain SDG", "ERM"]
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c", "void, not counted"]
    image, said, wrong, truth, unsure, _ = (axes.get_images()[0].get_array() for axes in figure.axes[:6])
    assert np.array_equal(image, np.full((2, 4, 3), 9))
    assert truth[0, 2].tolist() == said[0, 2].tolist() == palette(CLASSES)[1].tolist()
    assert wrong[0, 0].tolist() == palette(CLASSES)[2].tolist()  # what erm says
    assert unsure.ndim == 2
    assert [axes.get_xlabel() for axes in figure.axes[:3]] == ["", *["75% of pixels right"] * 2]
    assert all(axes.get_xlabel().endswith(" nats per pixel") for axes in figure.axes[4:6])


def test_long_names_of_rows_stay_apart(tmp_path):
    names = ["a-rather-long-name-of-a-sequence", "another street at night, in the rain", "winter-night-in-the-old-town"]
    folder = make_run(tmp_path / "a", accuracies={"home": 0.9, **dict.fromkeys(names, 0.5)})
    for name in names:
        flat = np.zeros((2, 9, 16), np.int16)  # twice as wide as high: little room beside a row
        masks = {"mask_truth": flat, "mask_predicted": flat, "mask_uncertainty": flat.astype(np.float16)}
        add_outcome(
            folder, name, confidence=np.full(2, 0.9), labels=None, predicted=None, shares_right=np.full(2, 0.75),
            mask_images=np.full((2, 9, 16, 3), 9, np.uint8), **masks,
        )  # fmt: skip
    figure = segments.masks([read_run(folder)], "bench")
    figure.draw_without_rendering()
    labels = [axes.yaxis.label for axes in figure.axes if axes.get_ylabel()]
    assert len(labels) == 6
    boxes = [label.get_window_extent() for label in labels]
    for above, below in pairwise(boxes):
        assert above.y0 >= below.y1
    assert boxes[0].y1 <= figure.bbox.y1
    for label, name in zip(labels[::2], names, strict=True):
        assert label.get_text().startswith(name[:6])


def test_a_bar_for_each_class_that_a_domain_has(runs):
    figure = segments.classes(runs, "bench")
    dusk, home = figure.axes
    assert (dusk.get_title(loc="left"), home.get_title(loc="left")) == ("dusk", "home (source)")
    assert [bar.get_width() for bar in dusk.patches] == [0.5, 0.25, 0.4, 0.2]
    assert [bar.get_width() for bar in home.patches] == [0.6, 0.3, 0.1, 0.6, 0.3, 0.1]
    assert [label.get_text() for label in home.get_yticklabels()] == ["a", "b", "c"]
    assert len({bar.get_hatch() for bar in dusk.patches}) == 2


def test_figures_show_the_miou_where_pixels_have_labels(runs):
    drawn = {each.name: each for each in figures_for(runs, "bench")}
    assert {"miou", "miou-uncertainty", "masks", "classes"} <= set(drawn)
    assert "accuracy" not in drawn
    axes = drawn["miou"].figure.axes[0]
    assert axes.get_xlabel() == "mIoU"
    points, _, [bars] = axes.containers[0]
    assert points.get_xdata().tolist() == [0.6, 0.5, 0.5]  # the source, dusk, and the average unseen
    whiskers = bars.get_segments()[1]
    assert whiskers[:, 0].tolist() == pytest.approx([0.3, 0.6])  # as recorded


def test_images_with_one_label_have_neither_masks_nor_classes(tmp_path):
    folder = make_run(tmp_path / "a")
    add_outcome(folder, "x")
    for draw in (segments.masks, segments.classes):
        with pytest.raises(Missing):
            draw([read_run(folder)], "bench")
