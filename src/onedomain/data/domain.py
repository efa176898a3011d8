"""`Domain`: labelled images of one domain, the one form in which data moves through the library."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from onedomain.errors import UserError

IntArray = np.ndarray[Any, np.dtype[np.int64]]


class Images(Protocol):
    """What a `Domain` asks of its images: a numpy array has it, and so has anything that decodes on demand.

    Indexing by an integer array gives (n, height, width, channels): uint8 from 0 to 255, or float32.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, indices: Any, /) -> np.ndarray: ...


class Chosen:
    """Some of other images, looked up when asked for."""

    def __init__(self, images: Images, chosen: IntArray) -> None:
        self.images, self.chosen = images, chosen
        self.shape = (len(chosen), *images.shape[1:])

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, indices: Any, /) -> np.ndarray:
        return self.images[self.chosen[indices]]


class Batch(NamedTuple):
    images: torch.Tensor  # (n, channels, height, width), float32
    labels: torch.Tensor  # (n,) or (n, height, width), int64


@dataclass(frozen=True)
class Domain:
    """Labelled images of one domain.

    `labels` holds one class an image, shape (N,), or one class a pixel, shape (N, H, W). `void` is the label of
    pixels that never count. Images of a data set keep their order, so that an index means the
    same image wherever the same files are read.
    """

    name: str
    split: str
    images: Images = field(repr=False)
    labels: IntArray = field(repr=False)
    classes: tuple[str, ...]
    void: int | None = None
    note: str = ""  # what a reader of a table must know of this data, such as "rendered"

    def __post_init__(self) -> None:
        where = f"domain '{self.name}' ({self.split})"
        shape = self.images.shape
        if len(shape) != 4 or 0 in shape:
            raise UserError(where, f"images have shape {tuple(shape)}", "(N, height, width, channels), none of them 0")
        if isinstance(self.images, np.ndarray) and self.images.dtype not in (np.uint8, np.float16, np.float32):
            raise UserError(where, f"images are of type {self.images.dtype}", "uint8 from 0 to 255, or float32")
        labels = np.asarray(self.labels)
        if labels.dtype.kind not in "iu":
            raise UserError(where, f"labels are of type {labels.dtype}", "whole numbers")
        if labels.shape not in {(shape[0],), tuple(shape[:3])}:
            raise UserError(
                where,
                f"labels have shape {labels.shape} for images of shape {tuple(shape)}",
                f"({shape[0]},) or {tuple(shape[:3])}",
            )
        if self.void is not None and labels.ndim == 1:
            raise UserError(where, f"void is {self.void} while each image has one label", "void for labels of pixels")
        object.__setattr__(self, "labels", labels.astype(np.int64, copy=False))
        object.__setattr__(self, "classes", tuple(self.classes))
        counted = self.labels if self.void is None else self.labels[self.labels != self.void]
        if counted.size and (counted.min() < 0 or counted.max() >= len(self.classes)):
            bad = int(counted.min()) if counted.min() < 0 else int(counted.max())
            raise UserError(where, f"a label is {bad}", f"0 to {len(self.classes) - 1} ({len(self.classes)} classes)")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dense(self) -> bool:
        """Whether each pixel has a label."""
        return self.labels.ndim == 3

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        _, height, width, channels = self.images.shape
        return height, width, channels

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The lowest and highest value of a pixel in a batch: 0 and 1 for bytes, else those of the first images."""
        sample = self.images[np.arange(min(len(self), 500))]
        return (0.0, 1.0) if sample.dtype == np.uint8 else (float(sample.min()), float(sample.max()))

    def batch(self, indices: Sequence[int] | IntArray, device: torch.device | str = "cpu") -> Batch:
        """The images at `indices` as float32 in the channels_last layout (bytes become 0 to 1), and their labels."""
        index = np.asarray(indices)
        pixels = torch.from_numpy(np.ascontiguousarray(self.images[index])).to(device)
        # (n, h, w, c) in memory seen as (n, c, h, w) *is* channels_last: no copy is made.
        images = pixels.permute(0, 3, 1, 2)
        images = images.to(torch.float32).div_(255) if pixels.dtype == torch.uint8 else images.to(torch.float32)
        return Batch(images, torch.from_numpy(self.labels[index]).to(device))

    def image_fingerprints(self) -> list[str]:
        """A short SHA-256 of each image, whatever form it is in: bytes and the same image as floats have the same."""
        found: list[str] = []
        for start in range(0, len(self), 256):
            images = self.batch(range(start, min(start + 256, len(self)))).images.permute(0, 2, 3, 1).numpy()
            found += [hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()[:16] for image in images]
        return found

    def without(self, fingerprints: Collection[str]) -> Domain | None:
        """All but the images with these fingerprints; None if there are no others."""
        left = [place for place, each in enumerate(self.image_fingerprints()) if each not in fingerprints]
        return self if len(left) == len(self) else self.subset(left) if left else None

    def subset(self, indices: Sequence[int] | IntArray, split: str | None = None) -> Domain:
        """The images at `indices` as a domain of their own; images that are read as needed stay so."""
        index = np.asarray(indices)
        in_memory = isinstance(self.images, np.ndarray) and not isinstance(self.images, np.memmap)
        images = self.images[index] if in_memory else Chosen(self.images, index)
        return replace(self, images=images, labels=self.labels[index], split=split or self.split)

    def require_every_class(self) -> Domain:
        """Refuse a class without a single image: a model cannot learn what it never sees."""
        counts = np.bincount(self.labels[self.labels != self.void].ravel(), minlength=len(self.classes))
        empty = [self.classes[i] for i in np.flatnonzero(counts == 0)]
        if empty:
            raise UserError(
                f"domain '{self.name}' ({self.split})",
                f"no image of class {', '.join(empty)}",
                "at least one a class",
            )
        return self

    @cached_property
    def fingerprint(self) -> str:
        """A short SHA-256 over shape, classes, labels and, when they are in memory, the pixels."""
        digest = hashlib.sha256(repr((tuple(self.images.shape), self.classes, self.void)).encode())
        digest.update(np.ascontiguousarray(self.labels).tobytes())
        if isinstance(self.images, np.ndarray):
            for start in range(0, len(self), 4096):
                digest.update(np.ascontiguousarray(self.images[start : start + 4096]).tobytes())
        return digest.hexdigest()[:16]
