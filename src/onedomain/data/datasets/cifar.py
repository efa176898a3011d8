"""CIFAR-10, the source of `cifar10-c`, as it is published: the python and the binary version, packed or unpacked.

The python version is made of pickles, and unpickling runs what a file says. Here a pickle may hold dictionaries, lists,
numbers, texts and arrays of bytes; anything else in it is refused unread, and no function of it is ever called.
"""

from __future__ import annotations

import io
import math
import pickle
import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onedomain.data.datasets.labelled import Form, Labelled
from onedomain.data.formats import Arrays, decoding, labels_within, pair
from onedomain.errors import UserError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
LITE_SOURCE, LITE_TARGET = 6_000, 1_000  # the first training and test images, of which `cifar10-c-lite` is made
LITE_CALIBRATION = (3_000, 4_000)  # test images whose corrupted copies are not scored there
MOST_BYTES = 2**26  # of a file of the archive; published ones hold 10,000 images
_PLANES = 3 * SIDE * SIDE  # bytes per image: all red values, then green, then blue


class Version(NamedTuple):
    archive: str
    folder: str  # in the archive, and what it unpacks to
    splits: Mapping[str, tuple[str, ...]]
    read: Callable[[str, bytes], Arrays]  # one file, by its name and content


def from_archive(version: Version, split: str, path: Path) -> Arrays:
    """One split, out of the packed archive."""
    wanted = [f"{version.folder}/{name}" for name in version.splits[split]]
    found: dict[str, bytes] = {}
    with decoding(path, "a whole .tar.gz file"), tarfile.open(path, "r:gz") as archive:
        for member in archive:
            inside = member.name.removeprefix("./")
            file = archive.extractfile(member) if inside in wanted else None
            if file is not None and member.size > MOST_BYTES:  # a small archive may say so
                raise UserError(f"{path}: {inside}", f"is of {member.size:,} bytes", f"at most {MOST_BYTES:,}")
            if file is not None:
                found[inside] = file.read()
    for inside in wanted:
        if inside not in found:
            raise UserError(str(path), f"{inside} is missing", "the archive as published")
    return _joined([version.read(f"{path}: {Path(inside).name}", found[inside]) for inside in wanted])


def from_folder(version: Version, *paths: Path) -> Arrays:
    """One split, out of the unpacked files."""
    parts = []
    for path in paths:
        with decoding(path, "a file you may read"):
            content = path.read_bytes()
        parts.append(version.read(str(path), content))
    return _joined(parts)


def _joined(parts: list[Arrays]) -> Arrays:
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def read_binary(name: str, content: bytes) -> Arrays:
    """The binary version: rows of a label and 3,072 values."""
    row = 1 + _PLANES
    if not content or len(content) % row:
        raise UserError(name, f"{len(content):,} bytes found", f"rows of {row:,} bytes, one label and one image each")
    rows = np.frombuffer(content, np.uint8).reshape(-1, row)
    return _paired(name, rows[:, 1:], rows[:, 0])


def read_pickled(name: str, content: bytes) -> Arrays:
    """The python version: a dictionary with `data`, (N, 3072) bytes, and `labels`."""
    allowed = "a batch of CIFAR-10 as published"
    with decoding(name, allowed):
        batch = _Reader(io.BytesIO(content), encoding="bytes").load()
        if isinstance(batch, dict) and isinstance(batch.get(b"data"), _Made):
            batch[b"data"] = batch[b"data"].as_bytes()
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= set(batch):
        raise UserError(name, "has not both data and labels", allowed)
    rows, labels = batch[b"data"], batch[b"labels"]
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.shape[1] != _PLANES:
        given = f"has shape {rows.shape}" if isinstance(rows, np.ndarray) else "is no array of bytes"
        raise UserError(name, f"data {given}", f"bytes of shape (N, {_PLANES})")
    if not isinstance(labels, list) or any(type(label) is not int for label in labels):
        raise UserError(name, "labels are not a list of whole numbers", "one label per image")
    return _paired(name, rows, np.array(labels))


def _paired(name: str, rows: np.ndarray, labels: np.ndarray) -> Arrays:
    images = np.ascontiguousarray(rows.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))
    return pair(name, images, labels_within(name, labels, high=len(CLASSES) - 1))


class _Made:
    """Stands in for numpy's arrays and dtypes while a pickle is read: keeps what they are made of, and does nothing."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def as_bytes(self) -> np.ndarray:
        _version, shape, kind, by_columns, content = self.state
        plain = isinstance(kind, _Made) and kind.made_of[0] in (b"u1", "u1", b"|u1", "|u1")
        if not plain or not isinstance(content, bytes) or by_columns or math.prod(shape) != len(content):
            raise pickle.UnpicklingError("an array of something else than bytes is never loaded")
        return np.frombuffer(content, np.uint8).reshape(shape)


_KNOWN = ("numpy.core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype")


class _Reader(pickle.Unpickler):
    """Knows three names, all mapped to the class above; numpy itself is never called."""

    def find_class(self, module: str, name: str) -> type:
        if f"{module}.{name}".replace("numpy._core.", "numpy.core.") not in _KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name}, which is never loaded")
        return _Made


PYTHON = Version(
    "cifar-10-python.tar.gz",
    "cifar-10-batches-py",
    {"train": tuple(f"data_batch_{part}" for part in range(1, 6)), "test": ("test_batch",)},
    read_pickled,
)
BINARY = Version(
    "cifar-10-binary.tar.gz",
    "cifar-10-batches-bin",
    {"train": tuple(f"data_batch_{part}.bin" for part in range(1, 6)), "test": ("test_batch.bin",)},
    read_binary,
)
VERSIONS = (BINARY, PYTHON)


def _forms(split: str) -> tuple[Form, ...]:
    """Both published versions, unpacked or packed."""
    forms = []
    for version in VERSIONS:
        files = tuple(f"{version.folder}/{name}" for name in version.splits[split])
        forms.append(Form(partial(from_folder, version), files, called=f"{version.folder}/"))
        forms.append(Form(partial(from_archive, version, split), (version.archive,)))
    return tuple(forms)


# SHA-256 of the archives: TensorFlow Datasets (url_checksums/cifar10.txt) and torchvision's prototype data sets.
CIFAR10 = Labelled(
    name="cifar10",
    what="32×32 photographs of ten kinds, the source of cifar10-c",
    home="cifar10/cifar10.npz",
    shape=(SIDE, SIDE, 3),
    counts={"train": 50_000, "test": 10_000},
    needed=("train", "test"),
    classes=CLASSES,
    forms={split: _forms(split) for split in ("train", "test")},
    places=("cifar10", "cifar10/raw", "."),
    addresses=("https://www.cs.toronto.edu/~kriz/",),
    sha256={
        "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    },
)


source = partial(CIFAR10.load, "train")
lite_source = partial(CIFAR10.load, "train", stop=LITE_SOURCE)
lite_held_out = partial(CIFAR10.load, "test", stop=LITE_TARGET)  # clean; under corruptions they are the targets
lite_calibration = partial(CIFAR10.load, "test", start=LITE_CALIBRATION[0], stop=LITE_CALIBRATION[1])
