"""Images in another light: contrast and brightness, and bright for dark. Every image changes its own way."""

from __future__ import annotations

import torch
from torch import Tensor


def relit(
    images: Tensor, *, contrast: float, brightness: float, inverted: float, within: tuple[float, float]
) -> Tensor:
    """Each channel of each image, (N, C, H, W), in a contrast and a brightness of its own; some images inverted.

    Contrast changes around the channel's mean by a factor from 1 / (1 + contrast) to 1 + contrast, brightness by up to
    that share of the range either way. `inverted` is the chance that all channels of an image are inverted. What would
    lie beyond `within`, the lowest and the highest value of a pixel, is cut off.
    """
    low, high = within
    n, channels = images.shape[:2]
    spread, lift = (2 * torch.rand(2, n, channels, 1, 1, device=images.device, dtype=images.dtype) - 1).unbind()
    factor = (1 + contrast) ** spread
    mean = images.mean((2, 3), keepdim=True)
    changed = ((images - mean) * factor + mean + brightness * (high - low) * lift).clamp(low, high)
    chosen = torch.rand(n, 1, 1, 1, device=images.device) < inverted
    return torch.where(chosen, low + high - changed, changed)
