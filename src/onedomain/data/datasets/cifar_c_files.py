"""The files of CIFAR-10-C: `<corruption>.npy`, the five severities one after another, and `labels.npy`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onedomain.data.corruptions import SEVERITIES
from onedomain.data.datasets.base import Found
from onedomain.data.datasets.cifar import CIFAR10
from onedomain.data.datasets.cifar_files import SIDE
from onedomain.data.formats import decoding
from onedomain.errors import UserError

LABELS = "labels.npy"
MADE = "regenerated.json"  # lies in a folder whose files we made, and says how


@dataclass(frozen=True)
class Corrupted(Found):
    """The folder of a corruption, how many test images it has, and whether we made it."""

    images: int
    regenerated: bool

    @property
    def folder(self) -> Path:
        return self.paths[0]


def file_name(kind: str) -> str:
    return f"{kind.replace('-', '_')}.npy"


def found_in(folder: Path) -> Corrupted:
    """A folder of corrupted images, official or ours."""
    made = folder / MADE
    if not made.exists():
        return Corrupted((folder,), CIFAR10.counts["test"], regenerated=False)
    with decoding(made, "the file that onedomain data prepare wrote"):
        return Corrupted((folder,), int(json.loads(made.read_text(encoding="utf-8"))["images"]), regenerated=True)


def read_pixels(found: Corrupted, kind: str) -> np.ndarray:
    """All five severities of a corruption, memory-mapped: severity s is the s-th block of rows."""
    path = found.folder / file_name(kind)
    pixels = _mapped(path)
    expected = (len(SEVERITIES) * found.images, SIDE, SIDE, 3)
    if pixels.dtype != np.uint8 or pixels.shape != expected:
        allowed = f"uint8 of shape {expected}, {found.images:,} images per severity"
        raise UserError(str(path), f"holds {pixels.dtype} of shape {pixels.shape}", allowed)
    return pixels


def read_labels(found: Corrupted, clean: np.ndarray | None) -> np.ndarray:
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


def out_of_order(found: Corrupted, kind: str, clean: np.ndarray, sample: int = 500) -> str | None:
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
