"""CamVid, driving scenes of 180×240 pixels: train by day, score at dusk. A real shift with labels of pixels.

One file, `camvid/camvid_240x180.npz`, with `x_<split>`, uint8 of (N, 180, 240, 3), and `y_<split>`, uint8 of (N, 180,
240). This module does not import torch until a domain is loaded, so that its tables are quick to list.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onedomain.data.formats import npz_array, npz_keys
from onedomain.errors import UserError

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

Folder = str | os.PathLike[str]

FILE = "camvid/camvid_240x180.npz"
COUNTS = {"day_train": 180, "day_test": 60, "dusk_test": 100}
SHAPE = (180, 240)
CALIBRATION_EVERY = 9  # of the day's training frames, one in so many is set apart: 20, none of them at either end

CLASSES = (
    "sky",
    "building",
    "pole",
    "road",
    "pavement",
    "tree",
    "sign",
    "fence",
    "car",
    "pedestrian",
    "cyclist",
)
VOID = 11
COLOURS = (
    (128, 128, 128),
    (128, 0, 0),
    (192, 192, 128),
    (128, 64, 128),
    (0, 0, 192),
    (128, 128, 0),
    (192, 128, 128),
    (64, 64, 128),
    (64, 0, 128),
    (64, 64, 0),
    (0, 128, 192),
)
GET = f"put {Path(FILE).name} into camvid/: the frames and masks of CamVid, reduced, by day and at dusk"


def source(data_dir: Folder) -> Domain:
    """The frames by day, without those that are set apart."""
    day = _domain("day", "train", "day_train", data_dir)
    return day.subset(np.flatnonzero(~_set_apart(len(day))))


def calibration(data_dir: Folder) -> Domain:
    """One in nine of the day's training frames: they lie between those that are trained on, as the day's test does."""
    day = _domain("day", "train", "day_train", data_dir)
    return day.subset(np.flatnonzero(_set_apart(len(day))), split="calibration")


def held_out(data_dir: Folder) -> Domain:
    """The day's test frames: the in-domain reference."""
    return _domain("day", "test", "day_test", data_dir)


def target(data_dir: Folder) -> Domain:
    """The frames at dusk, which no training sees."""
    return _domain("dusk", "test", "dusk_test", data_dir)


def _set_apart(count: int) -> np.ndarray:
    """Which frames are set apart, as booleans."""
    apart: np.ndarray = np.arange(count) % CALIBRATION_EVERY == CALIBRATION_EVERY // 2
    return apart


def _domain(name: str, split: str, key: str, data_dir: Folder) -> Domain:
    from onedomain.data.domain import Domain

    images, labels = read(key, data_dir)
    wanted = COUNTS[key]
    note = "" if len(images) == wanted else f"{len(images):,} of {wanted:,} images"
    return Domain(name, split, images, labels, CLASSES, VOID, note)


def read(key: str, data_dir: Folder) -> tuple[np.ndarray, np.ndarray]:
    """The images and masks of one split, such as `day_train`."""
    path = Path(data_dir) / FILE
    if not path.is_file():
        raise UserError(f"domain 'camvid' ({key})", f"not found: no {FILE} in {Path(data_dir)}; {GET}")
    images, labels = (npz_array(path, f"{letter}_{key}") for letter in "xy")
    for what, array, shape in ((f"x_{key}", images, (*SHAPE, 3)), (f"y_{key}", labels, SHAPE)):
        if array.dtype != np.uint8 or array.shape[1:] != shape or not len(array):
            given = f"{what} is {array.dtype} of shape {array.shape}"
            raise UserError(str(path), given, f"uint8 of shape (N, {', '.join(map(str, shape))})")
    if len(images) != len(labels):
        raise UserError(str(path), f"{len(labels)} masks for {len(images)} images ({key})", "a mask for each image")
    if labels.max() > VOID:
        given = f"class id {labels.max()} found in y_{key}"
        raise UserError(str(path), given, f"0 to {VOID - 1}, or {VOID} for void")
    return images, labels


def counts(data_dir: Folder) -> dict[str, int]:
    """How many frames each split has; masks are read, images are not."""
    path = Path(data_dir) / FILE
    return {key: len(npz_array(path, f"y_{key}")) for key in COUNTS if f"y_{key}" in npz_keys(path)}
