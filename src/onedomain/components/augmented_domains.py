"""Augmented domains S⁺: made batch by batch, kept in a memory-mapped file, so that neither size nor a kill matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain.components.compact import as_bytes
from onedomain.components.state import check_names
from onedomain.data.arrays import SUFFIX, save_arrays
from onedomain.data.domain import Batch, Chosen, Domain, IntArray
from onedomain.data.mapped import new_map, old_map
from onedomain.data.memory import PIXELS_WITH_GRADIENTS, images_at_once

BATCH = 100  # images that are replaced at once, fewer if they are large: each image changes by itself
PAIRS = 40  # images that are kept beside their originals, for figures
EMBEDDED = 200  # images whose embedding is kept


class Pool:
    """Several domains of the same classes seen as one, such as S ∪ {S⁺ᵢ}."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = domains
        self.starts = np.cumsum([0, *(len(domain) for domain in domains)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def owners(self, indices: IntArray) -> IntArray:
        """The number of the domain that each index lies in."""
        found: IntArray = np.searchsorted(self.starts, indices, side="right") - 1
        return found

    def batch(self, indices: IntArray, device: torch.device | str = "cpu") -> Batch:
        """The images at `indices`, in that order, whichever domains they come from."""
        owner = self.owners(indices)
        parts = [
            (np.flatnonzero(owner == place), domain.batch(indices[owner == place] - self.starts[place], device))
            for place, domain in enumerate(self.domains)
            if (owner == place).any()
        ]
        order = torch.from_numpy(np.argsort(np.concatenate([places for places, _ in parts]))).to(device)
        images = torch.cat([batch.images for _, batch in parts])[order]
        return Batch(
            images.contiguous(memory_format=torch.channels_last), torch.cat([b.labels for _, b in parts])[order]
        )

    def labels(self, indices: IntArray) -> np.ndarray:
        """The labels at `indices`, without their images."""
        owner = self.owners(indices)
        labels = np.empty((len(indices), *self.domains[0].labels.shape[1:]), np.int64)
        for place in np.unique(owner):
            labels[owner == place] = self.domains[place].labels[indices[owner == place] - self.starts[place]]
        return labels


class PoolLabels:
    """The labels of a pool's pixels, looked up when asked for: a domain has as many as its images have bytes."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.shape = (len(pool), *pool.domains[0].labels.shape[1:])

    def __len__(self) -> int:
        return len(self.pool)

    def __getitem__(self, indices: Any, /) -> np.ndarray:
        return self.pool.labels(indices)


class AugmentedDomain:
    """A domain in the making: chosen images of a pool, each to be replaced by what it became.

    Which images are chosen follows from the seed, so only the number done has to be remembered to go on after a kill.
    Pixels are kept as 16-bit floats, finer than the bytes of the source.
    """

    def __init__(
        self, name: str, pool: Pool, size: int, seed: Sequence[int], folder: Path | None, done: int = 0
    ) -> None:
        self.name, self.pool, self.done = name, pool, done
        self.chosen: IntArray = np.random.default_rng(list(seed)).permutation(len(pool))[:size]
        if done > len(self.chosen):
            raise ValueError(f"{done} images of {name} are made, of {len(self.chosen)}")
        shape = (len(self.chosen), *pool.domains[0].image_shape)
        self.images: np.ndarray
        if folder is None:
            self.images = np.empty(shape, np.float16)
            return
        self.images = (old_map if done else new_map)(folder / f"{name}.npy", np.float16, shape)

    @property
    def complete(self) -> bool:
        return self.done == len(self.chosen)

    def next_batch(self, count: int, device: torch.device | str) -> Batch:
        """The images that are next to be replaced."""
        return self.pool.batch(self.chosen[self.done : self.done + count], device)

    def extend(self, images: torch.Tensor) -> None:
        """Write what the images of `next_batch` became."""
        stop = self.done + len(images)
        self.images[self.done : stop] = images.permute(0, 2, 3, 1).cpu().numpy()
        if isinstance(self.images, np.memmap):
            self.images.flush()
        self.done = stop

    def save_sample(self, folder: Path) -> None:
        """Keep some images beside what they were made from; which are chosen is random already."""
        chosen, made, source = self.chosen[:PAIRS], self.as_domain(), self.pool.domains[0]
        sample: dict[str, np.ndarray] = {
            "originals": as_bytes(self.pool.batch(chosen).images, source.value_range),
            "images": as_bytes(made.batch(np.arange(len(chosen))).images, source.value_range),
            "labels": np.zeros(0, np.int64) if made.dense else made.labels[:EMBEDDED],
            "origins": self.pool.owners(chosen),
        }
        save_arrays(folder / f"{self.name}.sample{SUFFIX}", {"domain": self.name}, sample)

    def as_domain(self) -> Domain:
        source = self.pool.domains[0]
        labels = Chosen(PoolLabels(self.pool), self.chosen) if source.dense else self.pool.labels(self.chosen)
        return Domain(self.name, "train", self.images, labels, source.classes, source.void, note="augmented")


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
    def pool(self) -> Pool:
        """S ∪ {S⁺ᵢ}."""
        return Pool([self.source, *self.domains])

    def make(self, change: Callable[[Batch], torch.Tensor], device: torch.device | str) -> Iterator[float]:
        """Make the next domain by `change`, and say how much of it is done; goes on where a kill left it."""
        self.making = self.making or self._next(done=0)
        height, width, _ = self.source.image_shape
        at_once = images_at_once(height, width, BATCH, PIXELS_WITH_GRADIENTS)
        while not self.making.complete:
            self.making.extend(change(self.making.next_batch(at_once, device)))
            yield self.making.done / len(self.making.chosen)
        if self.folder is not None:
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
        number, pool = len(self.domains) + 1, self.pool
        size = min(self.size, len(pool))
        seed = (*self.seed, number)
        return AugmentedDomain(
            f"augmented-{number}", pool, size, seed, self.folder, done=size if done is None else done
        )
