"""A user's own data as a `Domain`: arrays, a map-style torch Dataset, or a folder of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain.data.domain import MOST_CLASSES, Domain, Images, IntArray
from onedomain.data.files_on_demand import read_images
from onedomain.data.image_files import as_pixels, find_images
from onedomain.data.image_folder import image_folder, in_order
from onedomain.errors import UserError, unknown

_CHANNELS = (1, 3, 4)


def as_domain(
    data: Any,
    name: str = "source",
    split: str = "train",
    classes: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
    channels: int = 3,
) -> Domain:
    """Anything that `od.fit` and `run.evaluate` accept, as a `Domain`.

    `classes` are those of the source, when `data` is to be scored by a model that knows them already. Files are brought
    to `size`, (height, width), with so many channels.
    """
    if isinstance(data, Domain):
        return data
    if isinstance(data, (str, Path)) or _is_frame(data):
        return image_folder(data, name=name, split=split, size=size, classes=classes, channels=channels)
    if isinstance(data, (tuple, list)) and len(data) == 2:
        labels, names = _as_labels(data[1], name, classes)
        return Domain(name, split, as_images(data[0], name), labels, names)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (Mapping, np.ndarray)):
        return _from_dataset(data, name, split, classes)
    allowed = (
        "(images, labels), a torch Dataset with a length, an image folder, a table of paths and labels, or a Domain"
    )
    raise UserError(name, f"got a {type(data).__name__}", allowed)


def as_images(images: Any, name: str = "images") -> np.ndarray:
    """Images as (N, height, width, channels), uint8 or float32.

    An axis of 1, 3 or 4 holds the channels. Where both the second and the last could, it is the second of a torch
    tensor and the last of a numpy array, as is usual. A missing channel axis is added.
    """
    torch_order = isinstance(images, torch.Tensor)
    if isinstance(images, torch.Tensor):
        images = images.detach().cpu()
        images = (images.float() if images.is_floating_point() else images).numpy()
    array = _as_array(images, f"{name}: images")
    if array.ndim == 3:
        array = array[..., None]
    elif array.ndim == 4:
        second, last = array.shape[1] in _CHANNELS, array.shape[3] in _CHANNELS
        if (second and not last) or (torch_order and second == last):
            array = np.moveaxis(array, 1, -1)
    if array.ndim != 4 or 0 in array.shape:
        raise UserError(name, f"images have shape {array.shape}", "(N, height, width, channels), none of them 0")
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f":
        raise UserError(name, f"images are of type {array.dtype}", "uint8 from 0 to 255, or floats")
    array = array.astype(np.float32, copy=False)
    if not np.isfinite(array).all():
        raise UserError(name, "an image has a pixel that is NaN or infinite", "finite values")
    return array


def as_unlabelled(images: Any, image_shape: tuple[int, int, int]) -> tuple[Images, tuple[str, ...]]:
    """Images to be classified, and their names if they are files.

    Files, those of folders too, and images of Pillow are brought to (height, width, channels). An array may be one
    image of that shape.
    """
    height, width, channels = image_shape
    each = [images] if isinstance(images, (str, Path)) or _is_picture(images) else images
    if isinstance(each, (list, tuple)) and each and all(isinstance(one, (str, Path)) for one in each):
        found = [file for one in map(Path, each) for file in (find_images(one) if one.is_dir() else [one])]
        return read_images(found, size=(height, width), channels=channels), tuple(map(str, found))
    if isinstance(each, (list, tuple)) and each and all(map(_is_picture, each)):
        return np.stack([as_pixels(one, (height, width), channels) for one in each]), ()
    order = (channels, height, width) if isinstance(images, torch.Tensor) else image_shape
    if getattr(images, "shape", None) in (order, (height, width)):
        images = images[None]
    return as_images(images), ()


def _is_picture(data: Any) -> bool:
    """Whether it is an image of Pillow."""
    return hasattr(data, "convert") and hasattr(data, "getbands")


def check_values(name: str, given: tuple[float, float], trained: tuple[float, float]) -> None:
    """Refuse images whose values lie where those of training did not: a network would answer, and be sure of it."""
    low, high = trained
    room = 0.5 * max(high - low, 1e-6)
    outside = given[0] < low - room or given[1] > high + room
    # Bytes become 0 to 1; a whole image within these is unlike what was normalised, or goes to 255.
    plain = given[0] >= 0 and 0 < given[1] <= 1 and (low < -0.01 or high > 2)
    if outside or plain:
        is_like = "bytes, or floats from 0 to 1" if plain else f"values from {given[0]:.3g} to {given[1]:.3g}"
        allowed = f"values as in training, from {low:.3g} to {high:.3g}"
        raise UserError(name, f"images are {is_like}", allowed + (", or bytes" if trained == (0.0, 1.0) else ""))


class _DatasetImages:
    """Images of a map-style torch Dataset, taken from it anew at every access, so that its transforms stay random."""

    def __init__(self, dataset: Any, name: str) -> None:
        self.dataset, self.name = dataset, name
        self.shape = (len(dataset), *self._image(0).shape)

    def _image(self, index: int) -> np.ndarray:
        image = self.dataset[index][0]
        if not isinstance(image, (torch.Tensor, np.ndarray)):
            image = np.asarray(image)  # a PIL image
        if isinstance(image, torch.Tensor) and image.ndim == 2:
            image = image[None]
        pixels: np.ndarray = as_images(image[None], self.name)[0]
        return pixels

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, indices: IntArray) -> np.ndarray:
        images = [self._image(int(index)) for index in indices]
        for image in images:
            if image.shape != self.shape[1:]:
                given = f"an image is {image.shape} while the first is {tuple(self.shape[1:])}"
                raise UserError(self.name, given, "images of one shape")
        return np.stack(images)


def _from_dataset(dataset: Any, name: str, split: str, classes: Sequence[str] | None) -> Domain:
    if len(dataset) == 0:
        raise UserError(name, "the dataset is empty", "at least one image")
    item = dataset[0]
    if not (isinstance(item, (tuple, list)) and len(item) == 2):
        raise UserError(name, f"the dataset's items are {type(item).__name__}", "pairs of image and label")
    images = _DatasetImages(dataset, name)
    own = getattr(dataset, "classes", None)
    known = tuple(str(each) for each in own) if own else classes
    labels, names = _as_labels(np.stack([np.asarray(dataset[i][1]) for i in range(len(dataset))]), name, known)
    return Domain(name, split, images, labels, names)


def _is_frame(data: Any) -> bool:
    """Whether it is a table of pandas, which need not be installed."""
    return hasattr(data, "columns") and hasattr(data, "to_dict")


def _as_labels(labels: Any, name: str, known: Sequence[str] | None) -> tuple[IntArray, tuple[str, ...]]:
    """Labels as numbers, and the names of the classes: those that are known, the names given, or the numbers."""
    array = labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else _as_array(labels, f"{name}: labels")
    if array.ndim == 1 and array.size and all(isinstance(each, str) for each in array.tolist()):
        names = tuple(known or in_order(set(array.tolist())))
        places = {each: place for place, each in enumerate(names)}
        for odd in set(array.tolist()) - set(places):
            raise unknown(f"{name}: class", odd, names)
        return np.array([places[each] for each in array.tolist()]), names
    if array.dtype.kind not in "iu":
        raise UserError(name, f"labels are of type {array.dtype}", "whole numbers from 0, or names")
    numbers = array.astype(np.int64)
    return numbers, tuple(known or _class_names(numbers, name))


def _as_array(values: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(what, "rows of different lengths", "an array") from None


def _class_names(labels: IntArray, name: str) -> tuple[str, ...]:
    """The numbers from 0 to the largest label."""
    if labels.max(initial=0) >= MOST_CLASSES:
        raise UserError(name, f"a label is {labels.max()}", f"whole numbers from 0 to {MOST_CLASSES - 1:,}")
    return tuple(str(label) for label in range(int(labels.max(initial=0)) + 1))


def renamed(domain: Domain, name: str) -> Domain:
    return domain if domain.name == name else replace(domain, name=name)
