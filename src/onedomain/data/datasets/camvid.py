"""CamVid, driving scenes of 180×240 pixels: train by day, score at dusk. A real shift, with a label per pixel.

One file, `camvid/camvid_240x180.npz`, with `x_<split>`, uint8 of (N, 180, 240, 3), and `y_<split>`, uint8 of (N, 180,
240).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onedomain.data.datasets.base import Folder, Found, InOnePlace, Row, note_if_fewer
from onedomain.data.domain import Domain
from onedomain.data.formats import npz_array, npz_counts, require_form
from onedomain.errors import UserError

FILE = "camvid/camvid_240x180.npz"
COUNTS = {"day_train": 180, "day_test": 60, "dusk_test": 100}  # <domain>_<split>
SHAPE = (180, 240)
CALIBRATION_EVERY = 9  # of the day's training frames, one in nine is set apart: 20, none of them at either end

COLOURS = {
    "sky": (128, 128, 128),
    "building": (128, 0, 0),
    "pole": (192, 192, 128),
    "road": (128, 64, 128),
    "pavement": (0, 0, 192),
    "tree": (128, 128, 0),
    "sign": (192, 128, 128),
    "fence": (64, 64, 128),
    "car": (64, 0, 128),
    "pedestrian": (64, 64, 0),
    "cyclist": (0, 128, 192),
}  # of each class, as published
CLASSES = tuple(COLOURS)
VOID = 11


class CamVid(InOnePlace):
    def load(self, part: str, data_dir: Folder) -> Domain:
        images, labels = self.read(part, data_dir)
        name, _, split = part.partition("_")
        return Domain(name, split, images, labels, CLASSES, VOID, note_if_fewer(len(images), COUNTS[part]))

    def source(self, data_dir: Folder, split: str = "train") -> Domain:
        """The frames by day; one in nine, which lie between those that are trained on, are the split `calibration`."""
        day = self.load("day_train", data_dir)
        apart = np.arange(len(day)) % CALIBRATION_EVERY == CALIBRATION_EVERY // 2
        return day.subset(np.flatnonzero(apart == (split == "calibration")), split)

    def read(self, part: str, data_dir: Folder) -> tuple[np.ndarray, np.ndarray]:
        path = self.path(part, data_dir)
        images, labels = (npz_array(path, f"{letter}_{part}") for letter in "xy")
        for what, array, shape in ((f"x_{part}", images, (*SHAPE, 3)), (f"y_{part}", labels, SHAPE)):
            fits = array.dtype == np.uint8 and array.shape[1:] == shape and len(array) > 0
            require_form(path, what, array, fits, f"uint8 of shape (N, {', '.join(map(str, shape))})")
        if len(images) != len(labels):
            given = f"{len(labels)} masks for {len(images)} images ({part})"
            raise UserError(str(path), given, "one mask per image")
        if labels.max() > VOID:
            given = f"class id {labels.max()} found in y_{part}"
            raise UserError(str(path), given, f"0 to {VOID - 1}, or {VOID} for void")
        return images, labels

    def _count(self, data_dir: Path, found: Mapping[str, Found], row: Row) -> None:
        row.counts |= npz_counts(data_dir / self.home)


CAMVID = CamVid(
    name="camvid",
    counts=COUNTS,
    what="driving scenes by day and at dusk",
    get=f"put {Path(FILE).name} into camvid/: the frames and masks of CamVid, reduced, by day and at dusk",
    home=FILE,
)
