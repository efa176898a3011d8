"""SYNTHIA's video sequences: a highway as the source, New York and an old European town as unseen domains.

A sequence is a folder as published, such as SYNTHIA-SEQS-01-DAWN, whose left front camera is read:
`RGB/Stereo_Left/Omni_F` and, of the same names, `GT/LABELS/Stereo_Left/Omni_F`.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from onedomain.data.datasets.base import Folder, Found, InOnePlace, Row, note_if_fewer
from onedomain.data.domain import Domain
from onedomain.data.formats import decoding
from onedomain.data.frames import Frame, frame_domain, pair_frames
from onedomain.errors import UserError

LOCATIONS: Mapping[str, str] = {"highway": "01", "new-york": "02", "old-town": "04"}  # and the sequence's number
CONDITIONS = ("dawn", "fog", "night", "spring", "winter")
SOURCE, SOURCE_CONDITIONS = "highway", ("dawn", "fog", "spring")  # the paper's
SEQUENCES: Mapping[str, str] = {  # the published name of each domain's folder
    f"{location}-{condition}": f"SYNTHIA-SEQS-{number}-{condition.upper()}"
    for location, number in LOCATIONS.items()
    for condition in (SOURCE_CONDITIONS if location == SOURCE else CONDITIONS)
}
CAMERA = "Stereo_Left/Omni_F"
PLACES = ("synthia/{name}", "synthia/{name}/{name}", "{name}")  # an unpacked archive may hold its folder once more
SIZE = (192, 320)  # height and width that frames of 760×1280 are brought to
SOURCE_FRAMES = 900
SET_APART = 40  # frames of the source, at least, that are not trained on, where there are 100 or more
SEED = 0  # of the sample: every method and every run trains on the same frames

# As in the README of the published sequences; 13 and 14 are reserved there. Void is one of the 14 outputs of the
# paper's network, but its pixels never count.
_PUBLISHED = (  # the number of each class in the files, its name and its colour
    (0, "void", (0, 0, 0)),
    (1, "sky", (128, 128, 128)),
    (2, "building", (128, 0, 0)),
    (3, "road", (128, 64, 128)),
    (4, "sidewalk", (0, 0, 192)),
    (5, "fence", (64, 64, 128)),
    (6, "vegetation", (128, 128, 0)),
    (7, "pole", (192, 192, 128)),
    (8, "car", (64, 0, 128)),
    (9, "traffic sign", (192, 128, 128)),
    (10, "pedestrian", (64, 64, 0)),
    (11, "bicycle", (0, 128, 192)),
    (12, "lane marking", (0, 172, 0)),
    (15, "traffic light", (0, 128, 128)),
)
IDS = tuple(number for number, _, _ in _PUBLISHED)
COLOURS = {name: colour for _, name, colour in _PUBLISHED}
CLASSES = tuple(COLOURS)
VOID = CLASSES.index("void")
_NO_CLASS = 255
AT_ONCE = 64  # frames that are decoded together to check them


class Synthia(InOnePlace):
    """A folder of frames for each location and condition."""

    def load(self, part: str, data_dir: Folder) -> Domain:
        return _domain(part, "test", self.frames(part, data_dir))

    def of_source(self, split: str, condition: str, data_dir: Folder) -> Domain:
        """Frames of the highway by a fixed seed: 900 to train, half of the others each to test and calibrate."""
        part = f"{SOURCE}-{condition}"
        frames = self.frames(part, data_dir)
        places = split_source(len(frames), str(frames[0].image.parent))[split]
        note = note_if_fewer(len(places), SOURCE_FRAMES) if split == "train" else ""
        return _domain(part, split, [frames[place] for place in places], note)

    def frames(self, part: str, data_dir: Folder) -> list[Frame]:
        """The frames of a sequence, each with its label; of every file the kind and size are checked."""
        images = self.path(part, data_dir)
        masks = images.parents[2] / "GT" / "LABELS" / CAMERA
        return pair_frames(images, masks, lambda mask: mask.bits == 16 and mask.colours.startswith("RGB"), _ALLOWED)

    def _places(self, part: str) -> tuple[str, ...]:
        return tuple(f"{place.format(name=SEQUENCES[part])}/RGB/{CAMERA}" for place in PLACES)

    def _title(self, part: str) -> str:
        return f"domain '{part}'"

    def _where(self, data_dir: Path, found: Mapping[str, Found]) -> str:
        return str(data_dir / self.home)

    def _count(self, data_dir: Path, found: Mapping[str, Found], row: Row) -> None:
        for part, files in found.items():
            row.counts[part] = len(list(files.paths[0].glob("*.png")))

    def _check(self, data_dir: Path, found: Mapping[str, Found], row: Row) -> None:
        self._count(data_dir, found, row)
        for part, name in SEQUENCES.items():
            if part not in found:
                row.add(f"{name} is missing")
                continue
            frames = self.frames(part, data_dir)
            domain = _domain(part, "test", frames)
            for start in range(0, len(domain), AT_ONCE):
                domain.batch(range(start, min(start + AT_ONCE, len(domain))))
            stems = [frame.image.stem for frame in frames]
            if all(map(str.isdecimal, stems)):
                numbers = set(map(int, stems))
                gaps = max(numbers) + 1 - len(numbers)
                first = next(number for number in itertools.count() if number not in numbers)
                if gaps:
                    row.add(f"{name}: {gaps} frames are missing, the first is {first:0{len(stems[0])}d}")


SYNTHIA = Synthia(
    name="synthia",
    counts=dict.fromkeys(SEQUENCES),
    what="rendered driving scenes, three places in five conditions",
    get="get SYNTHIA-SEQS-01, -02 and -04 from synthia-dataset.net and unpack them into synthia/",
    home="synthia",
)


def split_source(count: int, where: str = "source") -> dict[str, list[int]]:
    """Which of `count` frames are for training, for calibration, and for scoring the source.

    Neighbours in a video look alike: the scores of the source flatter.
    """
    if count < 4:
        raise UserError(where, f"holds {count} frames", "at least 4")
    order = np.random.default_rng([SEED, count]).permutation(count)
    trained = min(SOURCE_FRAMES, max(count - SET_APART, count * 6 // 10))
    rest = order[trained:]
    parts = {"train": order[:trained], "test": rest[::2], "calibration": rest[1::2]}
    return {name: np.sort(places).tolist() for name, places in parts.items()}


def _domain(name: str, split: str, frames: list[Frame], note: str = "") -> Domain:
    return frame_domain(name, split, frames, size=SIZE, read_mask=read_mask, classes=CLASSES, void=VOID, note=note)


def read_mask(path: Path) -> np.ndarray:
    """The classes of one label file, as bytes. Pillow would read its 16 bits as 8, without a word; OpenCV does not."""
    import cv2
    from PIL import Image

    with decoding(path, _ALLOWED):
        content = path.read_bytes()
    pixels = None
    with suppress(OSError, SyntaxError, ValueError), Image.open(io.BytesIO(content), formats=["PNG"]) as opened:
        opened.verify()  # OpenCV would tell of a damaged file in lines of its own
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise UserError(str(path), "is not a whole PNG file", _ALLOWED)
    if pixels.dtype != np.uint16 or pixels.ndim != 3:
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        raise UserError(str(path), f"is a PNG of {8 * pixels.itemsize} bits and {channels} channels", _ALLOWED)
    ids = pixels[..., 2]  # the first channel of the file: OpenCV turns red, green, blue round
    classes = _TABLE[np.minimum(ids, len(_TABLE) - 1)]
    wrong = ids[classes == _NO_CLASS]
    if wrong.size:
        known = ", ".join(map(str, IDS))
        raise UserError(str(path), f"class id {wrong[0]} found", known)
    return classes


_ALLOWED = "a 16-bit RGB PNG with the class in its first channel, as in GT/LABELS (GT/COLOR is for the eye alone)"
_TABLE = np.full(max(IDS) + 2, _NO_CLASS, np.uint8)  # the last entry stands for all that is larger
_TABLE[list(IDS)] = np.arange(len(IDS))
