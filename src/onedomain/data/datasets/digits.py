"""The `digits` benchmark of the paper: MNIST as the source; SVHN, MNIST-M, SYN and USPS as unseen domains.

A domain is read from our prepared .npz file or, where that is absent, from the files its makers publish.
This module does not import torch until a domain is loaded, so that its tables are quick to list.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onedomain.data import formats
from onedomain.data.formats import Arrays, Images
from onedomain.errors import UserError, unknown

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

SPLITS = ("train", "test")
CLASSES = tuple("0123456789")
SIDE = 32
SOURCE_IMAGES = 10_000
HELD_OUT_IMAGES = 2_000
SHOTS_IMAGES = 1_000
RESAMPLING = "BILINEAR"  # of Pillow; the numbers depend on it, and OpenCV's differs in 4% of the pixels

# Where published files are looked for under the data folder, in this order; {name} is mnist-m or mnist_m.
PLACES = ("digits", "digits/{name}", "digits/raw", "{name}", ".")


class Form(NamedTuple):
    """One published form of one split: its files, and the reader that takes them."""

    read: Callable[..., Arrays]
    files: tuple[str, ...]


@dataclass(frozen=True)
class DigitSet:
    """A digit data set: how one image is published, how many there are, and in which files."""

    prepared: str  # our own file, in digits/
    shape: tuple[int, ...]  # of one image
    counts: Mapping[str, int]  # images a split, as published
    needed: tuple[str, ...]  # the splits that the benchmark reads
    official: Mapping[str, tuple[Form, ...]]  # per split, the first that is there is read
    get: str  # what to do where a {split} is missing


SETS: Mapping[str, DigitSet] = {
    "mnist": DigitSet(
        prepared="mnist.npz",
        shape=(28, 28),
        counts={"train": 60_000, "test": 10_000},
        needed=("train", "test"),
        official={
            "train": (
                Form(formats.read_idx, ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")),
                Form(formats.read_idx, ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")),
            ),
            "test": (
                Form(formats.read_idx, ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")),
                Form(formats.read_idx, ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")),
            ),
        },
        get="run: onedomain data prepare mnist",
    ),
    "mnist-m": DigitSet(
        prepared="mnist_m.npz",
        shape=(32, 32, 3),
        counts={"train": 59_001, "test": 9_001},
        needed=("test",),
        official={
            "train": (Form(formats.read_image_list, ("mnist_m_train", "mnist_m_train_labels.txt")),),
            "test": (Form(formats.read_image_list, ("mnist_m_test", "mnist_m_test_labels.txt")),),
        },
        get="it has no direct public address: put the folder mnist_m_{split} and mnist_m_{split}_labels.txt "
        "(from yaroslav.ganin.net, or data/mnist_m of github.com/joffery/M-ADA) into digits/mnist-m/",
    ),
    "svhn": DigitSet(
        prepared="svhn.npz",
        shape=(32, 32, 3),
        counts={"train": 73_257, "test": 26_032},
        needed=("test",),
        official={
            "train": (Form(formats.read_mat, ("train_32x32.mat",)),),
            "test": (Form(formats.read_mat, ("test_32x32.mat",)),),
        },
        get="run: onedomain data prepare svhn",
    ),
    "syn": DigitSet(
        prepared="syn.npz",
        shape=(32, 32, 3),
        counts={"train": 479_400, "test": 9_553},
        needed=("test",),
        official={  # copies of SYN write the digit 0 as 0 or, as SVHN does, as 10
            "train": (Form(partial(formats.read_mat, lowest=0), ("synth_train_32x32.mat",)),),
            "test": (Form(partial(formats.read_mat, lowest=0), ("synth_test_32x32.mat",)),),
        },
        get="it has no direct public address: put synth_{split}_32x32.mat (of SynthDigits.zip, from "
        "yaroslav.ganin.net) into digits/syn/",
    ),
    "usps": DigitSet(
        prepared="usps.npz",
        shape=(16, 16),
        counts={"train": 7_291, "test": 2_007},
        needed=("test",),
        official={
            "train": (
                Form(partial(formats.read_usps_h5, split="train"), ("usps.h5",)),
                Form(formats.read_usps_libsvm, ("usps.bz2",)),
            ),
            "test": (
                Form(partial(formats.read_usps_h5, split="test"), ("usps.h5",)),
                Form(formats.read_usps_libsvm, ("usps.t.bz2",)),
            ),
        },
        get="run: onedomain data prepare usps",
    ),
}


class MissingData(UserError):
    """A domain whose files are not there; the others can still be read."""

    def __init__(self, name: str, split: str, data_dir: str | os.PathLike[str]) -> None:
        files = " or ".join(" + ".join(form.files) for form in SETS[name].official[split])
        folders = ", ".join(f"{folder}/" for folder in _folders(name))
        looked = f"neither in digits/{SETS[name].prepared} nor as {files} in {folders}"
        problem = f"not found in {Path(data_dir)}: {looked}; {how_to_get(name, split)}"
        super().__init__(f"domain '{name}' ({split})", problem)
        self.domain = name


def how_to_get(name: str, split: str = "test") -> str:
    """What to do where a split of a data set is missing."""
    return SETS[name].get.format(split=split)


class Found(NamedTuple):
    """The files of one split, and the reader that takes them."""

    read: Callable[..., Arrays]
    paths: tuple[Path, ...]


def load(name: str, split: str, data_dir: str | os.PathLike[str]) -> Domain:
    """One split of a domain, as 32×32×3 bytes, in the order in which it is published."""
    return _domain(name, split, data_dir)


def source(data_dir: str | os.PathLike[str]) -> Domain:
    """The source of the paper: the first 10,000 training images of MNIST."""
    return _domain("mnist", "train", data_dir, stop=SOURCE_IMAGES).require_every_class()


def held_out(data_dir: str | os.PathLike[str]) -> Domain:
    """The 2,000 training images of MNIST that follow the source: no method trains on them, no table reports them."""
    domain = _domain("mnist", "train", data_dir, SOURCE_IMAGES, SOURCE_IMAGES + HELD_OUT_IMAGES)
    return replace(domain, split="held-out")


def for_shots(data_dir: str | os.PathLike[str]) -> Domain:
    """The 1,000 training images of MNIST after those: shifted copies of them are what few shots are drawn from."""
    start = SOURCE_IMAGES + HELD_OUT_IMAGES
    return replace(_domain("mnist", "train", data_dir, start, start + SHOTS_IMAGES), split="for shots")


def _domain(name: str, split: str, data_dir: str | os.PathLike[str], start: int = 0, stop: int | None = None) -> Domain:
    from onedomain.data.domain import Domain

    images, labels = read(name, split, data_dir)
    published = SETS[name].counts[split]
    wanted = (published if stop is None else min(stop, published)) - start
    if len(labels) <= start:
        raise UserError(f"{name} ({split})", f"has {len(labels):,} images", f"more than the first {start:,}")
    images, labels = images[start:stop], labels[start:stop]
    note = "" if len(labels) == wanted else f"{len(labels):,} of {wanted:,} images"
    return Domain(name, split, to_rgb32(images), labels, CLASSES, note=note)


def read(name: str, split: str, data_dir: str | os.PathLike[str]) -> Arrays:
    """Images and labels as published: neither resized nor coloured."""
    found = find(name, split, data_dir)
    if found is None:
        raise MissingData(name, split, data_dir)
    images, labels = found.read(*found.paths)
    shape = SETS[name].shape
    if images.shape[1:] != shape:
        size, published = ("×".join(map(str, s)) for s in (images.shape[1:], shape))
        raise UserError(str(found.paths[0]), f"images of {size} found", f"{published}, as {name} is published")
    return images, labels


def find(name: str, split: str, data_dir: str | os.PathLike[str]) -> Found | None:
    """The files that `load` would read: the prepared one, or published ones."""
    if name not in SETS:
        raise unknown("domain", name, SETS)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    path = prepared_path(name, data_dir)
    if path.exists() and split in formats.npz_counts(path):
        return Found(partial(formats.read_npz, split=split), (path,))
    for form in SETS[name].official[split]:
        for folder in _folders(name):
            paths = tuple(Path(data_dir) / folder / file for file in form.files)
            if all(path.exists() for path in paths):
                return Found(form.read, paths)
    return None


def prepared_path(name: str, data_dir: str | os.PathLike[str]) -> Path:
    """Where the prepared file of a data set lies, or would lie."""
    return Path(data_dir) / "digits" / SETS[name].prepared


def _folders(name: str) -> list[str]:
    names = (name, name.replace("-", "_"))
    return list(dict.fromkeys(place.format(name=spelling) for place in PLACES for spelling in names))


def to_rgb32(images: Images) -> Images:
    """Images of any size, grey or coloured, as 32×32×3: resized by Pillow, grey copied to three channels."""
    from PIL import Image

    if images.shape[1:3] != (SIDE, SIDE):
        resampling = Image.Resampling[RESAMPLING]
        resized = (Image.fromarray(image).resize((SIDE, SIDE), resampling) for image in images)
        images = np.stack([np.asarray(image) for image in resized])
    return images if images.ndim == 4 else np.repeat(images[..., None], 3, axis=3)
