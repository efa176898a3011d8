"""Augmented images beside their originals."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from onedomain.reporting.figures.declare import figure
from onedomain.reporting.figures.ingredients import Missing
from onedomain.reporting.figures.style import WIDTH, panels, show_image
from onedomain.runs.records import RunRecords
from onedomain.runs.samples import mosaic


@figure(
    "augmented-images",
    "Augmented images beside their originals",
    "What the method turned training images into, to train on as if they came from another domain.",
    place=9,
    for_each=True,
    of_targets=False,
)
def augmented_images(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """For each domain that a run made, images of the source above what became of them."""
    samples = runs[0].augmented()
    if not samples:
        raise Missing("the method makes no images, or the run was trained without a run folder")
    mosaics = [mosaic(sample) for sample in samples]
    height = WIDTH * mosaics[0].shape[0] / mosaics[0].shape[1] + 0.3
    figure, shown = panels(len(mosaics), height=height, columns=1)
    for axes, sample, pixels in zip(shown, samples, mosaics, strict=True):
        show_image(axes, pixels)
        axes.set_title(f"{sample.domain}: originals above, augmented below", loc="left")
    return figure
