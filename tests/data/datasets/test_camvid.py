from __future__ import annotations

import numpy as np
import pytest

import onedomain as od
from onedomain.data.datasets import camvid
from onedomain.data.datasets.camvid import CAMVID


def write(folder, **changes):
    rng = np.random.default_rng(0)
    arrays = {}
    for key, count in camvid.COUNTS.items():
        arrays[f"x_{key}"] = np.zeros((count // 10, 180, 240, 3), np.uint8)
        arrays[f"y_{key}"] = rng.integers(0, 12, (count // 10, 180, 240)).astype(np.uint8)
    (folder / "camvid").mkdir(exist_ok=True)
    np.savez(folder / camvid.FILE, **{**arrays, **changes})
    return folder


def test_the_real_data(real_data):
    if not (real_data / camvid.FILE).exists():
        pytest.skip(f"no {camvid.FILE} in ONEDOMAIN_DATA")
    domains = [
        *(CAMVID.source(real_data, split) for split in ("train", "calibration")),
        *(CAMVID.load(part, real_data) for part in ("day_test", "dusk_test")),
    ]
    assert [(len(d), d.name, d.split) for d in domains] == [
        (160, "day", "train"),
        (20, "day", "calibration"),
        (60, "day", "test"),
        (100, "dusk", "test"),
    ]
    day, _, _, dusk = domains
    assert day.images[:].mean() > 1.8 * dusk.images[:].mean()
    # Where things are in a driving scene: sky above, road below.
    labels = day.labels[:]
    assert np.bincount(labels[:, :20].ravel(), minlength=12).argmax() == camvid.CLASSES.index("sky")
    assert np.bincount(labels[:, -20:, 60:180].ravel(), minlength=12).argmax() == camvid.CLASSES.index("road")
    assert len(np.unique(labels)) == 12
    assert CAMVID.check(real_data).state == "whole"


def test_frames_to_calibrate_with_are_not_trained_on(tmp_path):
    numbered = np.zeros((180, 180, 240, 3), np.uint8)
    numbered[:, 0, 0, 0] = np.arange(180)
    masks = np.full((180, 180, 240), camvid.VOID, np.uint8)
    write(tmp_path, x_day_train=numbered, y_day_train=masks)
    source, calibration = CAMVID.source(tmp_path), CAMVID.source(tmp_path, "calibration")
    trained, kept = (set(d.images[:][:, 0, 0, 0].tolist()) for d in (source, calibration))
    assert len(kept) == 20
    assert trained | kept == set(range(180))
    assert not trained & kept
    assert max(abs(number - other) for number in kept for other in trained if abs(number - other) < 2) == 1


def test_fewer_frames_are_marked(tmp_path):
    assert CAMVID.load("dusk_test", write(tmp_path)).note == "10 of 100 images"
    assert CAMVID.check(tmp_path).state == "partial"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"y_dusk_test": np.full((10, 180, 240), 12, np.uint8)},
            "class id 12 found in y_dusk_test; allowed: 0 to 10, or 11",
        ),
        ({"y_dusk_test": np.zeros((9, 180, 240), np.uint8)}, "9 masks for 10 images"),
        ({"y_dusk_test": np.zeros((10, 90, 120), np.uint8)}, "y_dusk_test is uint8 of shape"),
        ({"x_dusk_test": np.zeros((10, 180, 240), np.uint8)}, "x_dusk_test is uint8 of shape"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, changes, message):
    with pytest.raises(od.UserError, match=f"camvid_240x180.npz: {message}"):
        CAMVID.load("dusk_test", write(tmp_path, **changes))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(od.UserError, match="domain 'camvid' .dusk_test.: not found"):
        CAMVID.load("dusk_test", tmp_path)
    with pytest.raises(od.UserError, match="camvid: is read as it is published"):
        CAMVID.prepare(tmp_path, lambda _text, _fraction: None)
