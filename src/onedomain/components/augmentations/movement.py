"""Images turned, scaled, slanted and shifted: the same things, seen from elsewhere. Every image moves its own way."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from onedomain.data.domain import Batch


def moved(batch: Batch, *, turn: float, zoom: float, shear: float, shift: float) -> Batch:
    """Each image, (N, C, H, W), under an affine map of its own; beyond the rim lies what is at the rim.

    The largest `turn` is in degrees either way, `zoom` a change of size from 1 / (1 + zoom) to 1 + zoom of both sides,
    `shear` pixels sideways for each pixel down, `shift` a share of either side. Images are interpolated between pixels;
    labels of pixels, (N, H, W), move with their images, each to the nearest.
    """
    images, labels = batch
    n, _, height, width = images.shape
    angle, size, slant, right, down = (2 * torch.rand(5, n, device=images.device, dtype=images.dtype) - 1).unbind()
    matrices = lookups(
        math.radians(turn) * angle, (1 + zoom) ** size, shear * slant, width * shift * right, height * shift * down
    )
    # Maps of pixels as maps of coordinates that go from −1 to 1 along either side
    half = torch.tensor([width / 2, height / 2], device=images.device, dtype=images.dtype)
    matrices = matrices * torch.cat([half, torch.ones_like(half[:1])]) / half[:, None]
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    found = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    if labels.dim() == 3:
        values = labels[:, None].to(images.dtype)
        nearest = F.grid_sample(values, grid, mode="nearest", padding_mode="border", align_corners=False)
        labels = nearest[:, 0].to(labels.dtype)
    return Batch(found, labels)


def lookups(angle: Tensor, size: Tensor, slant: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """Where each image is looked up for a pixel (x, y) from its middle, x to the right and y down: (N, 2, 3).

    What is seen there is turned clockwise by the angle, `size` times as large, slanted before, and shifted at last.
    """
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    across, along = (cos + slant * sin, sin - slant * cos), (-sin, cos)
    rows = [torch.stack([*row, -(row[0] * right + row[1] * down)], 1) for row in (across, along)]
    return torch.stack(rows, 1)
