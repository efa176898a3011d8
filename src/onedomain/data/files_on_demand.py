"""Many files as one array of what they hold: decoded by threads when they are asked for, or a little before."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.image_files import checked_size, decode_image
from onedomain.data.progress import progress
from onedomain.errors import UserError

IN_MEMORY = 2 * 2**30  # bytes of decoded images that are kept; of more, each is decoded whenever it is needed


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """Pillow decodes outside of Python's lock: threads do it side by side, beside a step of training."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="decode")


class FilesOnDemand:
    """Files as (N, height, width, …). `ask` has those decoded that will be wanted next."""

    def __init__(self, files: Sequence[Path], shape: tuple[int, ...], read: Callable[[Path], np.ndarray]) -> None:
        self.files, self.read = files, read
        self.shape = (len(files), *shape)
        self._asked: dict[int, Future[np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, indices: Any, /) -> np.ndarray:
        places = np.arange(len(self))[indices].tolist()
        self.ask(places)
        ready = {place: self._asked.pop(place).result() for place in dict.fromkeys(places)}
        return np.stack([ready[place] for place in places])

    def ask(self, indices: Any) -> None:
        """Begin to decode these images, which will be asked for soon."""
        for place in map(int, indices):
            if place not in self._asked:
                self._asked[place] = _threads().submit(self.decoded, place)

    def decoded(self, place: int) -> np.ndarray:
        image = self.read(self.files[place])
        if image.shape != self.shape[1:]:
            size, first = ("×".join(map(str, shape[:2])) for shape in (image.shape, self.shape[1:]))
            given = f"is {size} while {self.files[0].name} is {first}"
            raise UserError(str(self.files[place]), given, "images of one size, or give a size to bring them to")
        return image

    @cached_property
    def identity(self) -> bytes:
        """Names and sizes of the files, and what they are brought to."""
        known = [(file.parent.name, file.name, file.stat().st_size) for file in self.files]
        return repr((self.shape, known)).encode(errors="surrogateescape")

    def all(self) -> np.ndarray:
        """Every image, in memory."""
        images = np.empty(self.shape, np.uint8)
        with progress("read images", len(self), shown=len(self) > 2000, unit="images") as update:
            for place, image in enumerate(_threads().map(self.decoded, range(len(self)))):
                images[place] = image
                if place % 500 == 499:
                    update(place + 1, {})
        return images


def read_images(files: Sequence[Path], *, size: tuple[int, int] | None, channels: int) -> np.ndarray | FilesOnDemand:
    """Files as (N, height, width, channels) bytes: in memory, or decoded on demand if there are very many."""
    size = None if size is None else checked_size(size)
    read = partial(decode_image, size=size, channels=channels)
    images = FilesOnDemand(files, (*size, channels) if size else read(files[0]).shape, read)
    return images.all() if np.prod(images.shape, dtype=np.int64) <= IN_MEMORY else images
