"""Images through random convolutions: new textures and colours, the same shapes. Every image gets its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_SMALL = 1e-5
LARGEST_UNFOLDED = 2**24  # values that images are unfolded to at once: a matter of memory alone


def random_convolution(images: Tensor, sizes: Sequence[int]) -> Tensor:
    """Each image, (N, C, H, W), convolved with a kernel of its own, of one of the odd `sizes`, each as likely.

    Weights are normal with variance 1 / (channels · size²), so that values keep their scale (He's rule without the 2).
    Edges are padded with zeros; nothing is clipped.
    """
    n, c, h, w = images.shape
    largest = max(sizes)
    picked = torch.tensor(list(sizes), device=images.device)[torch.randint(len(sizes), (n,), device=images.device)]
    # Small kernels lie in the middle of the largest one: one multiplication for all sizes.
    away = (torch.arange(largest, device=images.device) - largest // 2).abs()
    inside = (torch.maximum(away[:, None], away[None, :]) <= (picked // 2).view(n, 1, 1)).to(images.dtype)
    spread = 1 / (picked.to(images.dtype) * math.sqrt(c))
    kernels = torch.randn(n, c, c, largest, largest, device=images.device, dtype=images.dtype)
    kernels = kernels * (inside * spread.view(n, 1, 1)).view(n, 1, 1, largest, largest)
    at_once = max(1, LARGEST_UNFOLDED // (c * largest * largest * h * w))
    parts = zip(torch.split(images, at_once), torch.split(kernels, at_once), strict=True)
    return torch.cat([_convolved(F.unfold(part, largest, padding=largest // 2), own, (h, w)) for part, own in parts])


def mixed_with_original(images: Tensor, changed: Tensor) -> Tensor:
    """α·x + (1 − α)·x', with α uniform between 0 and 1 for each image."""
    alpha = torch.rand(len(images), 1, 1, 1, device=images.device, dtype=images.dtype)
    return alpha * images + (1 - alpha) * changed


def progressive_convolution(
    images: Tensor,
    *,
    repeats: int,
    size: int = 3,
    offset: float = 0.2,
    contrast: float = 0.5,
    value_range: tuple[float, float] = (0.0, 1.0),
) -> Tensor:
    """One random block per image, (N, C, H, W), applied `repeats` times: displaced convolution, then contrast.

    A block: a kernel with normal weights, of an odd `size`, smoothed towards its middle; points displaced by normal
    offsets, whose deviation in pixels each image draws up to `offset`; standardised channels, a random gain and bias
    for each, of deviation `contrast`, and tanh. The block of an image stays the same in all repeats. Images and result
    lie in `value_range`.
    """
    n, c, h, w = images.shape
    new: dict[str, Any] = {"device": images.device, "dtype": images.dtype}
    kernels = torch.randn(n, c, c, size, size, **new) / math.sqrt(c * size * size)
    away = torch.arange(size, **new) - size // 2
    width = torch.rand(n, 1, 1, **new).clamp(min=_SMALL)
    smooth = torch.exp(-(away[:, None] ** 2 + away[None, :] ** 2) / (2 * width**2))
    kernels = kernels * smooth.view(n, 1, 1, size, size)
    grid = _displaced_points(n, h, w, size, offset, away)
    gain, bias = contrast * torch.randn(2, n, c, 1, 1, **new)

    low, high = value_range
    x = 2 * (images - low) / (high - low) - 1
    for _ in range(repeats):
        points = F.grid_sample(x, grid, align_corners=True)  # (N, C, size²·H, W)
        columns = points.view(n, c, size * size, h * w).flatten(1, 2)
        x = _convolved(columns, kernels, (h, w))
        deviation, mean = torch.std_mean(x, (2, 3), keepdim=True)
        x = torch.tanh(gain * (x - mean) / (deviation + _SMALL) + bias)
    return (x + 1) / 2 * (high - low) + low


def _convolved(columns: Tensor, kernels: Tensor, shape: tuple[int, int]) -> Tensor:
    """Columns (N, C·k², H·W) by the kernels of their images, (N, C, C, k, k)."""
    result = torch.bmm(kernels.flatten(2), columns)
    result = result.view(len(result), -1, *shape)
    return result.contiguous(memory_format=torch.channels_last)


def _displaced_points(n: int, h: int, w: int, size: int, offset: float, away: Tensor) -> Tensor:
    """Where each tap of the kernel looks, as `grid_sample` takes it: (N, size²·H, W, 2)."""
    new: dict[str, Any] = {"device": away.device, "dtype": away.dtype}
    y, x = torch.meshgrid(torch.arange(h, **new), torch.arange(w, **new), indexing="ij")
    tap_y, tap_x = torch.meshgrid(away, away, indexing="ij")
    spread = offset * torch.rand(n, 1, 1, 1, 1, **new)
    moved = spread * torch.randn(n, 2, size * size, h, w, **new)
    rows = y + tap_y.reshape(-1, 1, 1) + moved[:, 0]
    columns = x + tap_x.reshape(-1, 1, 1) + moved[:, 1]
    scaled = [2 * place / max(1, side - 1) - 1 for place, side in ((columns, w), (rows, h))]
    return torch.stack(scaled, -1).flatten(1, 2)
