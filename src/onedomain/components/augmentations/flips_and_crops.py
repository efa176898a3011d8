"""The usual variation of training images: mirror images and small shifts."""

from __future__ import annotations

import torch

from onedomain.data.domain import Batch

SHARE = 8  # a shift is at most the side divided by this: 4 pixels of 32, as Wide Residual Networks are trained


def flipped_and_cropped(batch: Batch) -> Batch:
    """Every image as it is or mirrored, by chance, and shifted; what comes in at the rim is reflected.

    Labels of pixels move with their images.
    """
    images, labels = batch
    count, _, height, width = images.shape
    rows, columns = _shifted(count, height), _shifted(count, width)
    columns = torch.where(torch.rand(count, 1) < 0.5, columns, width - 1 - columns)
    every, rows, columns = (
        index.to(images.device) for index in (torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :])
    )
    moved = images.permute(0, 2, 3, 1)[every, rows, columns].permute(0, 3, 1, 2)
    return Batch(moved, labels[every, rows, columns] if labels.dim() == 3 else labels)


def _shifted(count: int, side: int) -> torch.Tensor:
    """For each image the places that its rows or columns come from, (count, side)."""
    reach = side // SHARE
    places = torch.arange(side) + torch.randint(-reach, reach + 1, (count, 1))
    return (side - 1) - ((side - 1) - places.abs()).abs()
