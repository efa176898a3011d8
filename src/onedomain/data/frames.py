"""Folders of frames and their masks, decoded when they are asked for: neither is ever in memory as a whole."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onedomain.data.domain import Domain
from onedomain.data.files import as_names, as_path
from onedomain.data.files_on_demand import FilesOnDemand
from onedomain.data.formats import decoding, open_image
from onedomain.data.image_files import IMAGE_ENDINGS, checked_size, decode_image, image_size, no_image
from onedomain.errors import UserError

CACHE_BYTES = 2**28  # of decoded and resized frames that are kept, of all folders together
_PNG = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {0: "grey", 2: "RGB", 3: "indexed", 4: "grey with alpha", 6: "RGB with alpha"}


class Frame(NamedTuple):
    image: Path
    mask: Path


class Header(NamedTuple):
    """What the first bytes of a PNG file say of it."""

    width: int
    height: int
    bits: int  # of a channel
    colours: str


class Files(FilesOnDemand):
    """Files that are decoded again only if there was no room to keep them."""

    def decoded(self, place: int) -> np.ndarray:
        path = self.files[place]
        with decoding(path, "a file you may read"):
            changed = path.stat().st_mtime_ns
        return _CACHE.get((path, changed, self.read), lambda: self.read(path))

    @cached_property
    def identity(self) -> bytes:
        """Names and sizes of the files: decoding thousands of them only to compare them would take minutes."""
        return repr([(path.name, path.stat().st_size) for path in self.files]).encode()


class _Cache:
    """The arrays used last, as many as fit: a source that fits is decoded once, not once per epoch."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self.arrays: OrderedDict[Any, np.ndarray] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], np.ndarray]) -> np.ndarray:
        with self.lock:
            if key in self.arrays:
                self.arrays.move_to_end(key)
                return self.arrays[key]
        made = make()
        with self.lock:
            if key not in self.arrays:
                self.arrays[key] = made
                self.held += made.nbytes
            while self.held > self.most:
                self.held -= self.arrays.popitem(last=False)[1].nbytes
        return made


_CACHE = _Cache(CACHE_BYTES)


def frame_domain(
    name: str,
    split: str,
    frames: Sequence[Frame],
    *,
    size: tuple[int, int],
    read_mask: Callable[[Path], np.ndarray],
    classes: Sequence[str],
    void: int | None,
    note: str = "",
    channels: int = 3,
) -> Domain:
    """Frames as a domain of images and masks of one size, (height, width)."""
    size = checked_size(size)
    read_image = partial(decode_image, size=size, channels=channels)
    images = Files([frame.image for frame in frames], (*size, channels), read_image)
    masks = Files([frame.mask for frame in frames], size, lambda path: nearest(read_mask(path), size))
    return Domain(name, split, images, masks, tuple(classes), void, note)


def nearest(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The mask at another size, (height, width), each pixel that of the old one which its centre lies in.

    >>> nearest(np.array([[1, 2], [3, 4]]), (4, 2))[:, 0]
    array([1, 1, 3, 3])
    """
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(np.int64) for old, new in zip(mask.shape, size, strict=True)
    )
    return mask[rows[:, None], columns]


def pair_frames(images: Path, masks: Path, fits: Callable[[Header], bool], allowed: str) -> list[Frame]:
    """The frames of two folders, by name; one that has no counterpart is refused.

    The first bytes of every file are read, so that what does not fit is known before a training begins.
    """
    for folder in (images, masks):
        if not folder.is_dir():
            raise UserError(str(folder), "is not a folder", "a folder of frames")
    found = {path.stem: path for path in images.iterdir() if path.suffix.lower() in IMAGE_ENDINGS}
    labels = {path.stem: path for path in masks.iterdir() if path.suffix.lower() == ".png"}
    if not found:
        raise no_image(images, "frame")
    for stem in sorted(found.keys() ^ labels.keys()):
        if stem in found:
            raise UserError(str(masks / f"{stem}.png"), "is missing", f"a mask for each frame; there is {found[stem]}")
        raise UserError(str(images / f"{stem}.png"), "is missing", f"a frame for each mask; there is {labels[stem]}")
    frames = [Frame(found[stem], labels[stem]) for stem in sorted(found)]
    for image, mask in frames:
        header = png_header(mask)
        if not fits(header):
            raise UserError(str(mask), f"is a PNG of {header.bits} bits, {header.colours}", allowed)
        size = image_size(image)
        if size != (header.width, header.height):
            given = f"is {header.width}×{header.height} pixels, and {image} is {size[0]}×{size[1]}"
            raise UserError(str(mask), given, "a mask of the size of its image")
    return frames


def png_header(path: Path) -> Header:
    with decoding(path, "a PNG file"), path.open("rb") as file:
        start = file.read(26)
    if len(start) < 26 or not start.startswith(_PNG) or start[25] not in _COLOUR_TYPES:
        raise UserError(str(path), "is no PNG file", "a PNG file")
    width, height = (int.from_bytes(start[place : place + 4], "big") for place in (16, 20))
    return Header(width, height, start[24], _COLOUR_TYPES[start[25]])


def frame_folder(
    path: str | Path,
    *,
    classes: Sequence[str],
    size: tuple[int, int],
    void: int | None = None,
    name: str | None = None,
    split: str = "all",
    channels: int = 3,
) -> Domain:
    """A folder of your own with `images/` and `labels/`, where files of one name belong together.

    A label is an 8-bit PNG, grey or indexed, of the size of its image, whose values are the classes' numbers or `void`.
    Frames are read as needed and brought to `size`, (height, width): images smoothly, labels by their nearest pixel.
    `channels` is 3 for colours, 1 for grey.
    """
    root, classes = as_path(path, "images"), as_names(classes, "classes")
    frames = pair_frames(
        root / "images",
        root / "labels",
        lambda mask: (mask.bits, mask.colours) == (8, "grey") or mask.colours == "indexed",
        "an 8-bit PNG, grey or indexed, whose values are the classes' numbers",
    )
    return frame_domain(
        name or root.name,
        split,
        frames,
        size=size,
        read_mask=partial(_read_indices, classes=len(classes), void=void),
        classes=classes,
        void=void,
        channels=channels,
    )


def _read_indices(path: Path, classes: int, void: int | None) -> np.ndarray:
    """The values of an 8-bit mask, if each is a class or void."""
    with open_image(path, "a whole PNG file", formats=("PNG",)) as opened:
        mask = np.asarray(opened)  # of an indexed image its numbers, not its colours
    wrong = mask[(mask >= classes) & (mask != (-1 if void is None else void))]
    if wrong.size:
        beside = "" if void is None else f", or {void} for void"
        raise UserError(str(path), f"class id {wrong[0]} found", f"0 to {classes - 1}{beside}")
    return mask
