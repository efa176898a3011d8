"""`Domain`: labelled images of one domain, the one form in which data moves through the library."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from onedomain.errors import UserError

if TYPE_CHECKING:
    import torch

    from onedomain.data.corruptions import Corruption

IntArray = np.ndarray[Any, np.dtype[np.int64]]
MOST_CLASSES = 100_000
LONGEST_SIDE = 2**14  # of an image, in pixels
LARGEST_COPY = 2**28  # bytes that a subset of images in memory may take


class Images(Protocol):
    """What a `Domain` asks of its images: a numpy array has it, and so has anything that decodes on demand.

    Indexing by an integer array gives (n, height, width, channels): uint8 from 0 to 255, or float32. Labels per pixel
    may be of this kind too: whole numbers, (n, height, width). A class whose objects have `identity`, bytes that tell
    one content from another, has it in the fingerprint of its domains.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, indices: Any, /) -> np.ndarray: ...


class Chosen:
    """Some of other images, or of their labels, looked up when asked for."""

    def __init__(self, images: Images, chosen: IntArray) -> None:
        self.images: Images = images.images if isinstance(images, Chosen) else images
        self.chosen: IntArray = images.chosen[chosen] if isinstance(images, Chosen) else chosen
        self.shape = (len(chosen), *images.shape[1:])

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, indices: Any, /) -> np.ndarray:
        return self.images[self.chosen[indices]]

    def ask(self, indices: Any) -> None:
        """Pass on what will be wanted soon, if that is of use."""
        if callable(ask := getattr(self.images, "ask", None)):
            ask(self.chosen[indices])


class Batch(NamedTuple):
    images: torch.Tensor  # (n, channels, height, width), float32
    labels: torch.Tensor  # (n,) or (n, height, width), int64


@dataclass(frozen=True)
class Domain:
    """Labelled images of one domain.

    `labels` holds one class per image, (N,), or one class per pixel, (N, H, W), in memory or read on demand.
    `void` is the label of pixels that never count; it may be a class's number or lie beside them. Images of a data set
    keep their order, so that an index means the same image wherever the same files are read.
    """

    name: str
    split: str
    images: Images = field(repr=False)
    labels: IntArray | Images = field(repr=False)
    classes: tuple[str, ...]
    void: int | None = None
    note: str = ""  # what a reader of a table must know of this data, such as "rendered"
    corruption: Corruption | None = None  # that all images are under

    def __post_init__(self) -> None:
        where = f"domain '{self.name}' ({self.split})"
        object.__setattr__(self, "classes", tuple(self.classes))
        for text in (self.name, self.split, *self.classes):
            if not isinstance(text, str) or text != text.encode(errors="replace").decode():
                raise UserError(where, f"has the name {text!r:.60}", "names that are texts, in UTF-8")
        shape = self.images.shape
        if len(shape) != 4 or 0 in shape:
            raise UserError(where, f"images have shape {tuple(shape)}", "(N, height, width, channels), none of them 0")
        if isinstance(self.images, np.ndarray) and self.images.dtype not in (np.uint8, np.float16, np.float32):
            raise UserError(where, f"images are of type {self.images.dtype}", "uint8 from 0 to 255, or float32")
        if len(self.classes) > MOST_CLASSES:
            raise UserError(where, f"has {len(self.classes):,} classes", f"at most {MOST_CLASSES:,}")
        on_demand = hasattr(self.labels, "shape") and not hasattr(self.labels, "__array__")  # as a torch tensor has
        if not on_demand:
            object.__setattr__(self, "labels", self._checked(np.asarray(self.labels), where))
        if tuple(self.labels.shape) not in {(shape[0],), tuple(shape[:3])}:
            raise UserError(
                where,
                f"labels have shape {tuple(self.labels.shape)} for images of shape {tuple(shape)}",
                f"({shape[0]},) or {tuple(shape[:3])}",
            )
        if self.void is not None and not self.dense:
            raise UserError(where, f"void is {self.void} while each image has one label", "void for labels per pixel")

    def _checked(self, labels: np.ndarray, where: str) -> IntArray:
        """Labels in memory, if every one is a class or void. Masks keep their small integer type."""
        if labels.dtype.kind not in "iu":
            raise UserError(where, f"labels are of type {labels.dtype}", "whole numbers")
        counted = labels if self.void is None or labels.ndim == 1 else labels[labels != self.void]
        if counted.size and (counted.min() < 0 or counted.max() >= len(self.classes)):
            bad = int(counted.min()) if counted.min() < 0 else int(counted.max())
            raise UserError(where, f"a label is {bad}", f"0 to {len(self.classes) - 1} ({len(self.classes)} classes)")
        return labels if labels.ndim == 3 else labels.astype(np.int64, copy=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dense(self) -> bool:
        """Whether each pixel has a label."""
        return len(self.labels.shape) == 3

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        _, height, width, channels = self.images.shape
        return height, width, channels

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The lowest and highest value of a pixel in a batch: 0 and 1 for bytes, else those of the first images."""
        if self.images[np.arange(1)].dtype == np.uint8:  # files may have to be decoded: one is enough to know
            return 0.0, 1.0
        sample = self.images[np.arange(min(len(self), 500))]
        return float(sample.min()), float(sample.max())

    def batch(self, indices: Sequence[int] | IntArray, device: torch.device | str = "cpu") -> Batch:
        """The images at `indices` as float32 in the channels_last layout (bytes become 0 to 1), and their labels."""
        import torch  # here alone: whoever only reads data, or what was recorded of it, need not wait for it

        index = np.asarray(indices)
        pixels = torch.from_numpy(np.ascontiguousarray(self.images[index])).to(device)
        # (n, h, w, c) in memory seen as (n, c, h, w) *is* channels_last: no copy is made.
        images = pixels.permute(0, 3, 1, 2)
        images = images.to(torch.float32).div_(255) if pixels.dtype == torch.uint8 else images.to(torch.float32)
        return Batch(images, torch.from_numpy(self.labels[index].astype(np.int64)).to(device))

    def ask(self, indices: Sequence[int] | IntArray) -> None:
        """Say that a batch of these will be asked for: images that are decoded on demand will be ready."""
        if callable(ask := getattr(self.images, "ask", None)):
            ask(np.asarray(indices))

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
        """The images at `indices` as a new domain: copied if they are few, looked up otherwise."""
        index = np.asarray(indices)
        return replace(
            self, images=_some(self.images, index), labels=_some(self.labels, index), split=split or self.split
        )

    def require_every_class(self) -> Domain:
        """Refuse a class without a single image: a model cannot learn what it never sees.

        For segmentation the classes are those of the data set, and one domain may lack some of them.
        """
        if self.dense:
            return self
        counts = np.bincount(np.asarray(self.labels), minlength=len(self.classes))
        empty = [self.classes[i] for i in np.flatnonzero(counts == 0)]
        if empty:
            raise UserError(
                f"domain '{self.name}' ({self.split})",
                f"no image of class {', '.join(empty)}",
                "at least one per class",
            )
        return self

    @cached_property
    def fingerprint(self) -> str:
        """A short SHA-256 over shape, classes, labels and pixels; of files that are read as needed, over their names
        and sizes.
        """
        digest = hashlib.sha256(repr((tuple(self.images.shape), self.classes, self.void)).encode())
        for content in chain(_contents(self.labels, np.int64), _contents(self.images)):
            digest.update(content)
        return digest.hexdigest()[:16]


def _some(rows: Any, index: IntArray) -> Any:
    """Rows of an array or of what stands for one: a copy if it is small, since that is quicker to look up."""
    in_memory = isinstance(rows, np.ndarray) and not isinstance(rows, np.memmap)
    if in_memory and len(index) * rows[:1].nbytes <= LARGEST_COPY:
        return rows[index]
    return Chosen(rows, index)


def _contents(rows: IntArray | Images, kind: type[np.integer[Any]] | None = None) -> Iterator[bytes]:
    """What tells rows from others: their bytes if they are in memory (as type `kind`), else their `identity`."""
    inner = rows.images if isinstance(rows, Chosen) else rows
    if isinstance(inner, np.ndarray):
        at_once = max(1, 2**24 // max(1, inner[:1].nbytes))
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            yield np.ascontiguousarray(part if kind is None else part.astype(kind)).tobytes()
    elif hasattr(inner, "identity"):
        yield inner.identity
        if isinstance(rows, Chosen):
            yield rows.chosen.tobytes()
