"""CIFAR-10, the source of `cifar10-c`: from our prepared .npz file, or from the archives its makers publish.

This module does not import torch until a domain is loaded, so that benchmarks are quick to list.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onedomain.data import formats
from onedomain.data.datasets.cifar_files import CLASSES, SIDE, VERSIONS, from_archive, from_folder
from onedomain.data.formats import Arrays
from onedomain.errors import UserError, unknown

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

Folder = str | os.PathLike[str]
PREPARED = "cifar10/cifar10.npz"
COUNTS = {"train": 50_000, "test": 10_000}  # as published
PLACES = ("cifar10", "cifar10/raw", ".")  # where archives, or what they unpack to, are looked for
LITE_SOURCE, LITE_TARGET = 6_000, 1_000  # the first training and test images, of which `cifar10-c-lite` is made
LITE_CALIBRATION = (3_000, 4_000)  # test images whose corrupted copies are not scored there


class Found(NamedTuple):
    """The files of one split, and the reader that takes them."""

    read: Callable[..., Arrays]
    paths: tuple[Path, ...]


def source(data_dir: Folder) -> Domain:
    """All training images."""
    return _domain("train", data_dir).require_every_class()


def held_out(data_dir: Folder) -> Domain:
    """The clean test images."""
    return _domain("test", data_dir)


def lite_source(data_dir: Folder) -> Domain:
    return _domain("train", data_dir, 0, LITE_SOURCE).require_every_class()


def lite_held_out(data_dir: Folder) -> Domain:
    """The clean test images whose corrupted copies are the targets of `cifar10-c-lite`."""
    return _domain("test", data_dir, 0, LITE_TARGET)


def lite_calibration(data_dir: Folder) -> Domain:
    return _domain("test", data_dir, *LITE_CALIBRATION)


def _domain(split: str, data_dir: Folder, start: int = 0, stop: int | None = None) -> Domain:
    from onedomain.data.domain import Domain

    images, labels = read(split, data_dir)
    wanted = (stop or COUNTS[split]) - start
    images, labels = images[start:stop], labels[start:stop]
    if not len(labels):
        given = f"has no images from number {start:,} on"
        raise UserError(f"domain 'cifar10' ({split})", given, f"{wanted:,} images, as published")
    note = "" if len(labels) == wanted else f"{len(labels):,} of {wanted:,} images"
    return Domain("cifar10", split, images, labels, CLASSES, note=note)


def read(split: str, data_dir: Folder) -> Arrays:
    """Images (N, 32, 32, 3) and labels, in the published order."""
    found = find(split, data_dir)
    if found is None:
        places = ", ".join(f"{place}/" for place in PLACES)
        archives = " or ".join(version.archive for version in VERSIONS)
        looked = f"neither as {PREPARED} nor as {archives} (packed or unpacked) in {places}"
        advice = "run: onedomain data prepare cifar10"
        raise UserError(f"domain 'cifar10' ({split})", f"not found in {Path(data_dir)}: {looked}; {advice}")
    images, labels = found.read(*found.paths)
    if images.shape[1:] != (SIDE, SIDE, 3):
        size = "×".join(map(str, images.shape[1:]))
        raise UserError(str(found.paths[0]), f"images of {size} found", f"{SIDE}×{SIDE}×3, as CIFAR-10 is published")
    return images, labels


def find(split: str, data_dir: Folder) -> Found | None:
    """The files that `read` would take: the prepared one, else published ones."""
    if split not in COUNTS:
        raise unknown("split", split, COUNTS)
    prepared = Path(data_dir) / PREPARED
    if prepared.exists() and split in formats.npz_counts(prepared):
        return Found(partial(formats.read_npz, split=split), (prepared,))
    return next((found for found in _official(split, Path(data_dir)) if all(p.is_file() for p in found.paths)), None)


def _official(split: str, data_dir: Path) -> Iterator[Found]:
    for version in VERSIONS:
        for place in PLACES:
            folder = data_dir / place
            files = tuple(folder / version.folder / name for name in version.splits[split])
            yield Found(partial(from_folder, version, split), files)
            yield Found(partial(from_archive, version, split), (folder / version.archive,))
