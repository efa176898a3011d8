"""CIFAR-10-C: the test images of CIFAR-10 under 19 corruptions in five severities.

From the official files, `<corruption>.npy` and `labels.npy`, or from files of the same form that `onedomain data
prepare cifar10-c` makes; the latter are called "regenerated" wherever they appear. Images are memory-mapped: 95
domains cost no memory until they are scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onedomain.data.corruptions import KINDS, SEVERITIES, Corruption, check_kind, check_severity
from onedomain.data.datasets import cifar
from onedomain.data.datasets.cifar import Folder
from onedomain.data.datasets.cifar_files import CLASSES, SIDE
from onedomain.data.formats import decoding
from onedomain.errors import UserError

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

LABELS = "labels.npy"
MADE = "regenerated.json"  # is in a folder whose files we made, and says how
OFFICIAL = ("cifar10/CIFAR-10-C", "CIFAR-10-C")
REGENERATED = "cifar10/CIFAR-10-C-regenerated"
REGENERATED_LITE = "cifar10/CIFAR-10-C-lite-regenerated"
REGENERATED_NOTE = "regenerated"


class Found(NamedTuple):
    """A folder that holds a corruption, how many test images it has, and whether we made it."""

    folder: Path
    images: int
    regenerated: bool


def file_name(kind: str) -> str:
    return f"{kind.replace('-', '_')}.npy"


def target(kind: str, severity: int, data_dir: Folder, images: int | None = None) -> Domain:
    """One corruption at one severity; of the first `images` test images alone, if given."""
    from onedomain.data.domain import Domain

    kind, severity = check_kind(kind), check_severity(severity)
    found = find(kind, data_dir, images)
    if found is None:
        name = "cifar10-c" if images is None else "cifar10-c-lite"
        looked = ", ".join(f"{folder}/" for folder in _folders(images))
        problem = f"{file_name(kind)} and {LABELS} are not together in any of {looked} of {Path(data_dir)}"
        raise UserError(f"domain '{kind}'", f"{problem}; run: onedomain data prepare {name}")
    labels = read_labels(found, _clean_labels(Path(data_dir)))
    pixels = read_pixels(found, kind)
    start, count = (severity - 1) * found.images, min(images or found.images, found.images)
    wanted = images or cifar.COUNTS["test"]
    notes = [REGENERATED_NOTE] * found.regenerated + [f"{count:,} of {wanted:,} images"] * (count != wanted)
    return Domain(
        f"{kind}-{severity}",
        "test",
        pixels[start : start + count],
        labels[:count],
        CLASSES,
        note=", ".join(notes),
        corruption=Corruption(kind, severity),
    )


def targets(images: int | None = None) -> dict[str, Callable[[Path], Domain]]:
    """Loaders of all 95 by name, such as `fog-3`."""
    return {f"{kind}-{severity}": partial(_load, kind, severity, images) for kind in KINDS for severity in SEVERITIES}


def _load(kind: str, severity: int, images: int | None, data_dir: Path) -> Domain:
    return target(kind, severity, data_dir, images)


def find(kind: str, data_dir: Folder, images: int | None = None) -> Found | None:
    """Where a corruption lies: the official files if they are there, else ours."""
    for name in _folders(images):
        folder = Path(data_dir) / name
        if (folder / file_name(kind)).is_file() and (folder / LABELS).is_file():
            return _found(folder)
    return None


def _folders(images: int | None) -> tuple[str, ...]:
    return (*OFFICIAL, REGENERATED, *([] if images is None else [REGENERATED_LITE]))


def _found(folder: Path) -> Found:
    made = folder / MADE
    if not made.exists():
        return Found(folder, cifar.COUNTS["test"], regenerated=False)
    with decoding(made, "the file that onedomain data prepare wrote"):
        return Found(folder, int(json.loads(made.read_text(encoding="utf-8"))["images"]), regenerated=True)


def read_pixels(found: Found, kind: str) -> np.ndarray:
    """All five severities of a corruption, memory-mapped: severity s is the s-th block of rows."""
    path = found.folder / file_name(kind)
    pixels = _mapped(path)
    expected = (len(SEVERITIES) * found.images, SIDE, SIDE, 3)
    if pixels.dtype != np.uint8 or pixels.shape != expected:
        allowed = f"uint8 of shape {expected}, {found.images:,} images a severity"
        raise UserError(str(path), f"holds {pixels.dtype} of shape {pixels.shape}", allowed)
    return pixels


def read_labels(found: Found, clean: np.ndarray | None) -> np.ndarray:
    """The labels of one severity. They must be the same in all five blocks, and those of the clean test images."""
    path = found.folder / LABELS
    labels = _mapped(path)
    expected = len(SEVERITIES) * found.images
    if labels.dtype.kind not in "iu" or labels.shape != (expected,):
        given = f"holds {labels.dtype} of shape {labels.shape}"
        raise UserError(str(path), given, f"whole numbers of shape ({expected},)")
    blocks = labels.reshape(len(SEVERITIES), found.images)
    differ = np.flatnonzero((blocks != blocks[0]).any(1))
    if len(differ):
        severity = int(differ[0]) + 1
        row = int(np.flatnonzero(blocks[differ[0]] != blocks[0])[0])
        problem = f"labels of severity {severity} are not those of severity 1 (first at image {row})"
        raise UserError(str(path), problem, "the same labels in each of the five blocks")
    known = min(found.images, 0 if clean is None else len(clean))
    if clean is not None and (blocks[0, :known] != clean[:known]).any():
        row = int(np.flatnonzero(blocks[0, :known] != clean[:known])[0])
        problem = f"image {row} has label {blocks[0, row]}, and in the test images of CIFAR-10 label {clean[row]}"
        raise UserError(str(path), problem, "the labels of the test images, in their order")
    return np.asarray(blocks[0])


def _mapped(path: Path) -> np.ndarray:
    with decoding(path, "a whole .npy file of plain numbers"):
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def _clean_labels(data_dir: Path) -> np.ndarray | None:
    """The labels of the clean test images, if these are there."""
    found = cifar.find("test", data_dir)
    if found is None:
        return None
    return _read_labels_once(str(data_dir), tuple((str(path), path.stat().st_mtime_ns) for path in found.paths))


@lru_cache(maxsize=2)  # read once, not for each of 95 domains; files that change are read again
def _read_labels_once(data_dir: str, files: tuple[tuple[str, int], ...]) -> np.ndarray:
    return cifar.read("test", data_dir)[1]


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


def out_of_order(found: Found, kind: str, clean: np.ndarray, sample: int = 500) -> str | None:
    """What is wrong with a corruption's images, seen from the clean ones: rows or severities that were mixed up."""
    pixels = read_pixels(found, kind)
    count = min(found.images, len(clean))
    some = np.unique(np.linspace(0, count - 1, min(sample, count)).astype(np.int64))
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
    unit: np.ndarray = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
    return unit
