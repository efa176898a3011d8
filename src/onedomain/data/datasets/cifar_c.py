"""CIFAR-10-C: the test images of CIFAR-10 under 19 corruptions in five severities.

From the official files, `<corruption>.npy` and `labels.npy`, or from files of the same form that `onedomain data
prepare cifar10-c` makes; the latter are called "regenerated" wherever they appear. Images are memory-mapped: 95
domains cost no memory until they are scored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from onedomain.data.corruptions import KINDS, SEVERITIES, Corruption
from onedomain.data.datasets.base import Dataset, Folder, Found, Progress, Row, of_images
from onedomain.data.datasets.cifar import CIFAR10, CLASSES, LITE_TARGET, SIDE
from onedomain.data.datasets.regenerate import LABELS, MADE, file_name, regenerate
from onedomain.data.domain import Domain
from onedomain.data.formats import decoding
from onedomain.errors import UserError

OFFICIAL = ("cifar10/CIFAR-10-C", "CIFAR-10-C")
REGENERATED = "cifar10/CIFAR-10-C-regenerated"
REGENERATED_LITE = "cifar10/CIFAR-10-C-lite-regenerated"
REGENERATED_NOTE = "regenerated"
PARTS = {f"{kind}-{severity}": Corruption(kind, severity) for kind in KINDS for severity in SEVERITIES}


@dataclass(frozen=True)
class Corrupted(Found):
    """The folder of a corruption, how many test images it has, and whether we made it."""

    images: int
    regenerated: bool


@dataclass(frozen=True, kw_only=True)
class CIFAR10C(Dataset[Corrupted]):
    """One domain for each corruption at each severity. `home` is the folder of the files that we make."""

    images: int | None  # only the first of the test images; None for all
    places: tuple[str, ...]  # folders in which the files are looked for: the official ones, then ours

    @property
    def wanted(self) -> int:
        return self.images or CIFAR10.counts["test"]

    def load(self, part: str, data_dir: Folder) -> Domain:
        found = self.require(part, data_dir)
        kind, severity = PARTS[part]
        labels = read_labels(found, _clean_labels(Path(data_dir)))
        pixels = read_pixels(found, kind)
        start, count = (severity - 1) * found.images, min(self.images or found.images, found.images)
        notes = [REGENERATED_NOTE] * found.regenerated + [of_images(count, self.wanted)] * (count != self.wanted)
        return Domain(
            part,
            "test",
            pixels[start : start + count],
            labels[:count],
            CLASSES,
            note=", ".join(notes),
            corruption=PARTS[part],
        )

    def _find(self, part: str, data_dir: Path) -> Corrupted | None:
        for place in self.places:
            folder = data_dir / place
            if (folder / file_name(PARTS[part].kind)).is_file() and (folder / LABELS).is_file():
                made = folder / MADE
                if not made.exists():
                    return Corrupted((folder,), CIFAR10.counts["test"], regenerated=False)
                with decoding(made, "the file that onedomain data prepare wrote"):
                    count = int(json.loads(made.read_text(encoding="utf-8"))["images"])
                return Corrupted((folder,), count, regenerated=True)
        return None

    def _looked_for(self, part: str) -> str:
        looked = ", ".join(f"{place}/" for place in self.places)
        return f"{file_name(PARTS[part].kind)} and {LABELS} are not together in any of {looked}"

    def _title(self, part: str) -> str:
        return f"domain '{PARTS[part].kind}'"  # one message for the five severities, which lie in one file

    def _where(self, data_dir: Path, found: Mapping[str, Corrupted]) -> str:
        folders = {files.paths[0]: files.regenerated for files in found.values()}
        return ", ".join(f"{folder}{' (regenerated)' * regenerated}" for folder, regenerated in folders.items())

    def _count(self, data_dir: Path, found: Mapping[str, Corrupted], row: Row) -> None:
        row.counts["test"] = min(files.images for files in found.values())
        missing = [kind for kind in KINDS if kind not in _by_kind(found)]
        if missing:
            row.add(f"missing: {', '.join(missing)}")

    def _check(self, data_dir: Path, found: Mapping[str, Corrupted], row: Row) -> None:
        """Shapes, labels, and from the clean images whether rows or severities were mixed up."""
        clean, labels = CIFAR10.read("test", data_dir) if CIFAR10.find("test", data_dir) else (None, None)
        for kind, files in _by_kind(found).items():
            read_labels(files, labels)
            read_pixels(files, kind)
            mixed = None if clean is None else out_of_order(files, kind, clean)
            if mixed:
                row.add(mixed, "broken")
        self._count(data_dir, found, row)
        if row.counts["test"] < self.wanted:
            row.add(f"{row.counts['test']:,} of {self.wanted:,} test images")
        if clean is None:
            row.add("the clean test images are not there to compare with")

    def prepare(self, data_dir: Folder, tell: Progress) -> str:
        """Make the corrupted images anew from the test images; official files are used where they are."""
        found = self.find_all(data_dir)
        if len(found) == len(PARTS):
            return f"{self.name}: already there, {self._where(Path(data_dir), found)}"
        folder = Path(data_dir) / self.home
        count, left_out = regenerate(folder, Path(data_dir), self.images, tell)
        made = f"{len(KINDS) - len(left_out)} corruptions × {len(SEVERITIES)} severities of {count:,} test images"
        return "; ".join([f"{self.name}: regenerated, {folder} ({made})", *(f"left out: {why}" for why in left_out)])


CIFAR10_C = CIFAR10C(
    name="cifar10-c",
    what="its test images under 19 corruptions × 5 severities",
    get="put the official .npy files (zenodo.org/records/2535967) into cifar10/CIFAR-10-C/, or make them anew "
    "from the test images: onedomain data prepare cifar10-c",
    home=REGENERATED,
    counts=dict.fromkeys(PARTS),
    images=None,
    places=(*OFFICIAL, REGENERATED),
)
CIFAR10_C_LITE = CIFAR10C(
    name="cifar10-c-lite",
    what=f"the same of the first {LITE_TARGET:,} test images",
    home=REGENERATED_LITE,
    counts=dict.fromkeys(PARTS),
    images=LITE_TARGET,
    places=(*OFFICIAL, REGENERATED, REGENERATED_LITE),
)


def _by_kind(found: Mapping[str, Corrupted]) -> dict[str, Corrupted]:
    return {PARTS[part].kind: files for part, files in found.items()}


def _clean_labels(data_dir: Path) -> np.ndarray | None:
    """The labels of the clean test images, if these are there."""
    found = CIFAR10.find("test", data_dir)
    if found is None:
        return None
    return _read_labels_once(str(data_dir), tuple((str(path), path.stat().st_mtime_ns) for path in found.paths))


@lru_cache(maxsize=2)  # read once, not for each of 95 domains; files that change are read again
def _read_labels_once(data_dir: str, files: tuple[tuple[str, int], ...]) -> np.ndarray:
    return CIFAR10.read("test", data_dir)[1]


def read_pixels(found: Corrupted, kind: str) -> np.ndarray:
    """All five severities of a corruption, memory-mapped: severity s is the s-th block of rows."""
    path = found.paths[0] / file_name(kind)
    pixels = _mapped(path)
    expected = (len(SEVERITIES) * found.images, SIDE, SIDE, 3)
    if pixels.dtype != np.uint8 or pixels.shape != expected:
        allowed = f"uint8 of shape {expected}, {found.images:,} images per severity"
        raise UserError(str(path), f"holds {pixels.dtype} of shape {pixels.shape}", allowed)
    return pixels


def read_labels(found: Corrupted, clean: np.ndarray | None) -> np.ndarray:
    """The labels of one severity. They must be the same in all five blocks, and those of the clean test images."""
    path = found.paths[0] / LABELS
    labels = _mapped(path)
    expected = len(SEVERITIES) * found.images
    if labels.dtype.kind not in "iu" or labels.shape != (expected,):
        given = f"holds {labels.dtype} of shape {labels.shape}"
        raise UserError(str(path), given, f"whole numbers of shape ({expected},)")
    blocks = labels.reshape(len(SEVERITIES), found.images)
    differ = np.argwhere(blocks != blocks[0])
    if len(differ):
        severity, row = differ[0]
        problem = f"labels of severity {severity + 1} are not those of severity 1 (first at image {row})"
        raise UserError(str(path), problem, "the same labels in each of the five blocks")
    if clean is not None:
        known = min(found.images, len(clean))
        for row in np.flatnonzero(blocks[0, :known] != clean[:known])[:1]:
            problem = f"image {row} has label {blocks[0, row]}, and in the test images of CIFAR-10 label {clean[row]}"
            raise UserError(str(path), problem, "the labels of the test images, in their order")
    return np.asarray(blocks[0])


def _mapped(path: Path) -> np.ndarray:
    with decoding(path, "a whole .npy file of plain numbers"):
        return np.lib.format.open_memmap(path, mode="r")  # no archive, and no Python objects


# Severities of which the first lies nearer to the clean images than the second, by the mean distance of pixels. It
# grows from 1 to 5, but for the published constants of these six: frost darkens as it grows, glass and motion blur
# trade one constant for the other, spatter turns from water to mud, an elastic transform moves points less as it gets
# finer, and saturate turns from grey to gaudy.
GROWING = ((1, 2), (2, 3), (3, 4), (4, 5))
NEARER: Mapping[str, tuple[tuple[int, int], ...]] = {
    "frost": ((1, 2),),
    "glass-blur": ((1, 4), (2, 4), (3, 5)),
    "motion-blur": ((1, 2), (2, 3), (2, 4), (3, 5), (4, 5)),
    "spatter": ((1, 2), (2, 5), (4, 5), (5, 3)),
    "elastic-transform": ((5, 4), (4, 3), (3, 2), (2, 1)),
    "saturate": ((3, 1), (1, 2), (3, 4), (4, 5)),
}


def out_of_order(found: Corrupted, kind: str, clean: np.ndarray) -> str | None:
    """What is wrong with a corruption's images, seen from the clean ones: rows or severities that were mixed up."""
    pixels = read_pixels(found, kind)
    count = min(found.images, len(clean))
    some = np.unique(np.linspace(0, count - 1, min(500, count)).astype(np.int64))
    originals, others = _shapes(clean[some]), _shapes(clean[np.roll(some, 1)])
    distances = []
    for place in range(len(SEVERITIES)):
        corrupted = pixels[place * found.images + some]
        alike = (_shapes(corrupted) * originals).sum(1) >= (_shapes(corrupted) * others).sum(1)
        if alike.mean() < 0.9:  # of the made ones at least 98.8%
            return f"{file_name(kind)}: severity {place + 1} does not hold the test images in their order"
        distances.append(np.abs(corrupted.astype(np.float32) - clean[some]).mean())
    for near, far in NEARER.get(kind, GROWING):
        if distances[near - 1] >= distances[far - 1]:
            known = f"severity {far} is nearer to the clean images than severity {near}"
            return f"{file_name(kind)}: {known}, and should not be: severities mixed up?"
    return None


def _shapes(images: np.ndarray) -> np.ndarray:
    """Images as vectors of length 1, without their mean brightness and contrast, which a corruption may change."""
    flat = images.reshape(len(images), -1).astype(np.float32)
    flat -= flat.mean(1, keepdims=True)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
