"""The few images of a target that are learned from: drawn by seed, named by their fingerprints, never test images."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from onedomain.data.domain import Domain, IntArray
from onedomain.errors import UserError


def draw(pool: Domain, shots: int, seed: int) -> IntArray:
    """The places of `shots` images of each class that the pool has; for segmentation that many in all.

    A function of the seed alone; with the same seed, fewer shots are a subset of more shots.
    """
    if not isinstance(shots, (int, np.integer)) or shots < 1:
        raise UserError("shots", f"got {shots}", "a whole number from 1; the run as it is has 0 shots")
    if pool.dense:
        if shots > len(pool):
            raise UserError("shots", f"got {shots}, and {pool.name} has {len(pool)} images", f"at most {len(pool)}")
        return _first(np.arange(len(pool)), shots, [seed])
    labels = np.asarray(pool.labels)
    counts = np.bincount(labels, minlength=len(pool.classes))
    fewest = int(counts[counts > 0].min())
    if shots > fewest:
        few = [f"{pool.classes[label]} ({counts[label]})" for label in np.flatnonzero((counts > 0) & (counts < shots))]
        listed = ", ".join(few[:5]) + (", …" if len(few) > 5 else "")
        given = f"got {shots}, and {pool.name} ({pool.split}) has fewer images of class {listed}"
        raise UserError("shots", given, f"at most {fewest}")
    chosen = [_first(np.flatnonzero(labels == label), shots, [seed, int(label)]) for label in np.flatnonzero(counts)]
    return np.concatenate(chosen)


def _first(places: IntArray, count: int, seed: list[int]) -> IntArray:
    return np.random.default_rng(seed).permutation(places)[:count]


def missing_classes(shots: Domain) -> tuple[str, ...]:
    """Classes without a single drawn image, or pixel; void is none of them."""
    present = {*np.unique(shots.labels[np.arange(len(shots))]).tolist(), shots.void}
    return tuple(name for label, name in enumerate(shots.classes) if label not in present)


def refuse_test_images(target: str, images: Collection[str], test: Collection[str]) -> None:
    """No drawn image may be one that is scored afterwards; both are known by their fingerprints."""
    both = len(set(images).intersection(test))
    if both:
        given = f"{both} of the images drawn from {target} are among those to score"
        raise UserError("test", given, "images of their own: what was learned by heart says nothing")


def left_over(pool: Domain, places: IntArray, images: Collection[str]) -> Domain | None:
    """What was not drawn, nor is a copy of a drawn image: to score where the target has no test images of its own."""
    others = np.setdiff1d(np.arange(len(pool)), places)
    return pool.subset(others, "not drawn").without(set(images)) if len(others) else None
