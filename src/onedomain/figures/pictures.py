"""Augmented images beside their originals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from onedomain.arrays import ByteArray
from onedomain.figures.ingredients import Missing
from onedomain.figures.style import WIDTH, panels, styled, without_axes
from onedomain.records import RunRecords
from onedomain.samples import AugmentedSample

COLUMNS = 8
GAP = 2  # white pixels between images


@styled
def augmented_images(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """For each domain that a run made, images of the source above what became of them."""
    samples = runs[0].augmented()
    if not samples:
        raise Missing("the method makes no images, or the run was trained without a run folder")
    mosaics = [mosaic(sample) for sample in samples]
    height = WIDTH * mosaics[0].shape[0] / mosaics[0].shape[1] + 0.3
    figure, shown = panels(len(mosaics), height=height, columns=1)
    for axes, sample, pixels in zip(shown, samples, mosaics, strict=True):
        axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="none")
        axes.set_title(f"{sample.domain}: originals above, augmented below", loc="left")
        without_axes(axes)
    return figure


def mosaic(sample: AugmentedSample) -> ByteArray:
    """Two rows of images on white: originals, and below each what became of it. Of as many classes as there is room."""
    chosen = _chosen(sample)
    _, height, width, channels = sample.images.shape
    pixels = np.full((2 * height + GAP, COLUMNS * (width + GAP) - GAP, channels), 255, np.uint8)
    for column, place in enumerate(chosen):
        left = column * (width + GAP)
        pixels[:height, left : left + width] = sample.originals[place]
        pixels[height + GAP :, left : left + width] = sample.images[place]
    return pixels if channels in (1, 3) else pixels.mean(2, keepdims=True).astype(np.uint8)


def _chosen(sample: AugmentedSample) -> list[int]:
    """Images made from the source itself if there are, one of each class before a second of any."""
    places = np.flatnonzero(sample.origins == 0) if (sample.origins == 0).any() else np.arange(len(sample.images))
    seen: dict[int, int] = {}
    turns = []
    for place in places:
        label = int(sample.labels[place]) if len(sample.labels) else 0
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], label, int(place)))
    return [place for _, _, place in sorted(turns)[:COLUMNS]]
