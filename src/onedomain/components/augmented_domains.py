"""Augmented domains S⁺: made batch by batch, kept in a memory-mapped file, so that neither size nor a kill matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain.components.compact import as_bytes
from onedomain.components.state import check_names
from onedomain.data.arrays import SUFFIX, save_arrays
from onedomain.data.domain import Batch, Chosen, Domain, Images, IntArray
from onedomain.data.mapped import new_map, old_map
from onedomain.data.memory import PIXELS_WITH_GRADIENTS, images_at_once
from onedomain.networks import distributed
from onedomain.networks.distributed import gathered, own, wait

BATCH = 100  # images that are replaced at once, fewer if they are large: each image changes by itself
PAIRS = 40  # images that are kept beside their originals, for figures
EMBEDDED = 200  # images whose embedding is kept


class Joined:
    """Images, or labels, of several domains, one after another: looked up when asked for.

    Images in bytes become 0 to 1, as in a batch, so that they fit to those of augmented domains.
    """

    def __init__(self, parts: Sequence[Images]) -> None:
        self.parts = parts
        self.ends = np.cumsum([len(part) for part in parts])
        self.shape = (int(self.ends[-1]), *parts[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any, /) -> np.ndarray:
        owner = np.searchsorted(self.ends, indices, side="right")
        images = len(self.shape) == 4
        rows = np.empty((len(indices), *self.shape[1:]), np.float32 if images else np.int64)
        for place in np.unique(owner):
            found = self.parts[place][indices[owner == place] - (self.ends[place] - len(self.parts[place]))]
            rows[owner == place] = found / np.float32(255) if images and found.dtype == np.uint8 else found
        return rows


def pooled(domains: Sequence[Domain]) -> Domain:
    """Several domains of the same classes seen as one, such as S ∪ {S⁺ᵢ}."""
    images, labels = (Joined(column) for column in zip(*((each.images, each.labels) for each in domains), strict=True))
    return replace(domains[0], images=images, labels=labels)


class AugmentedDomain:
    """A domain in the making: chosen images of earlier ones, each to be replaced by what it became.

    Which images are chosen follows from the seed, so only the number done has to be remembered to go on after a kill.
    Pixels are kept as 16-bit floats, finer than the bytes of the source.
    """

    def __init__(
        self, name: str, domains: Sequence[Domain], size: int, seed: Sequence[int], folder: Path | None, done: int = 0
    ) -> None:
        self.name, self.domains, self.pool, self.done = name, domains, pooled(domains), done
        self.chosen: IntArray = np.random.default_rng(list(seed)).permutation(len(self.pool))[:size]
        if done > len(self.chosen):
            raise ValueError(f"{done} images of {name} are made, of {len(self.chosen)}")
        shape = (len(self.chosen), *self.pool.image_shape)
        self.images: np.ndarray | None = None
        self.map = partial(old_map, Path() if folder is None else folder / f"{name}.npy", np.float16, shape)
        if folder is None:
            self.images = np.empty(shape, np.float16)
        elif distributed.place() == 0:
            self.images = self.map() if done else new_map(folder / f"{name}.npy", np.float16, shape)

    def make(self, change: Callable[[Batch], torch.Tensor], device: torch.device | str) -> Iterator[float]:
        """Replace the images that are left by what `change` makes of them, and say how much is done.

        Processes that work together change a share each; the first one writes them all, and the others look them up.
        """
        height, width, _ = self.pool.image_shape
        at_once = images_at_once(height, width, BATCH, PIXELS_WITH_GRADIENTS)
        while self.done < len(self.chosen):
            chosen = self.chosen[self.done : self.done + at_once]
            images = gathered(change(self.pool.batch(own(torch.from_numpy(chosen)).numpy(), device)), len(chosen))
            if self.images is not None:
                self.images[self.done : self.done + len(images)] = images.permute(0, 2, 3, 1).cpu().numpy()
            if isinstance(self.images, np.memmap):
                self.images.flush()
            self.done += len(images)
            yield self.done / len(self.chosen)
        wait()

    def save_sample(self, folder: Path) -> None:
        """Keep some images beside what they were made from; which are chosen is random already."""
        chosen, made, source = self.chosen[:PAIRS], self.as_domain(), self.domains[0]
        sample: dict[str, np.ndarray] = {
            "originals": as_bytes(self.pool.batch(chosen).images, source.value_range),
            "images": as_bytes(made.batch(np.arange(len(chosen))).images, source.value_range),
            "labels": np.zeros(0, np.int64) if made.dense else made.labels[:EMBEDDED],
            "origins": np.searchsorted(np.cumsum([len(each) for each in self.domains]), chosen, side="right"),
        }
        save_arrays(folder / f"{self.name}.sample{SUFFIX}", {"domain": self.name}, sample)

    def as_domain(self) -> Domain:
        images, labels = self.map() if self.images is None else self.images, self.pool.labels
        of_chosen = Chosen(labels, self.chosen) if self.pool.dense else labels[self.chosen]
        return Domain(self.name, "train", images, of_chosen, self.pool.classes, self.pool.void, note="augmented")


class Augmentation:
    """The augmented domains of a run, made one after another from the source and the earlier ones.

    Each holds `size` images, or as many as there are to choose from. The state is how far the making has come; the
    images are in `folder`, or in memory without one.
    """

    def __init__(self, source: Domain, size: int, seed: Sequence[int], folder: Path | None) -> None:
        self.source, self.size, self.seed, self.folder = source, size, tuple(seed), folder
        self.domains: list[Domain] = []
        self.making: AugmentedDomain | None = None

    @property
    def pool(self) -> Domain:
        """S ∪ {S⁺ᵢ}."""
        return pooled([self.source, *self.domains])

    def make(self, change: Callable[[Batch], torch.Tensor], device: torch.device | str) -> Iterator[float]:
        """Make the next domain by `change`, and say how much of it is done; goes on where a kill left it."""
        self.making = self.making or self._next(done=0)
        yield from self.making.make(change, device)
        if self.folder is not None and distributed.place() == 0:
            self.making.save_sample(self.folder)
        self.domains.append(self.making.as_domain())
        self.making = None

    def state_dict(self) -> dict[str, Any]:
        return {"domains": len(self.domains), "making": None if self.making is None else self.making.done}

    def check_state(self, state: Any, name: str) -> None:
        given = check_names(self.state_dict(), state, name)
        domains, making = given["domains"], given["making"]
        if type(domains) is not int or domains < 0:
            raise ValueError(f"{name} has {domains!r} domains")
        if making is not None and (type(making) is not int or making < 0):
            raise ValueError(f"{name} has {making!r} images of a domain")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.domains, self.making = [], None
        for _ in range(state["domains"]):
            self.domains.append(self._next(done=None).as_domain())
        if state["making"] is not None:
            self.making = self._next(done=state["making"])

    def _next(self, done: int | None) -> AugmentedDomain:
        """The next domain, of which `done` images are made already; all of them, if None."""
        domains, number = [self.source, *self.domains], len(self.domains) + 1
        size = min(self.size, sum(map(len, domains)))
        seed = (*self.seed, number)
        return AugmentedDomain(
            f"augmented-{number}", domains, size, seed, self.folder, done=size if done is None else done
        )
