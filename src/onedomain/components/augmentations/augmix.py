"""AugMix: chains of simple operations on images, mixed. Every image draws its own operations, strengths and shares."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta, Dirichlet

Operation = Callable[[Tensor, Tensor], Tensor]  # images (N, C, H, W) from 0 to 1, strengths (N,) from 0 to 1


def augmix(images: Tensor, *, chains: int = 3, depth: int = 3, severity: float = 0.3) -> Tensor:
    """m·x + (1 − m)·Σᵢ wᵢ·chainᵢ(x), with w ~ Dirichlet(1, …) and m ~ Beta(1, 1), of images (N, C, H, W) from 0 to 1.

    Each image and chain draws its number of operations, from 1 to `depth`; `severity`, up to 1, is their largest
    strength.
    """
    n, device = len(images), images.device
    weights = Dirichlet(torch.ones(chains, device=device)).sample((n,))
    share = Beta(torch.ones(n, device=device), torch.ones(n, device=device)).sample().view(n, 1, 1, 1)
    mixed = torch.zeros_like(images)
    for chain in range(chains):
        x = images
        length = torch.randint(1, depth + 1, (n,), device=device)
        for place in range(depth):
            x = torch.where((place < length).view(n, 1, 1, 1), _any_operation(x, severity), x)
        mixed = mixed + weights[:, chain].view(n, 1, 1, 1) * x
    return share * images + (1 - share) * mixed


def _any_operation(images: Tensor, severity: float) -> Tensor:
    """One operation for each image: all images that drew the same one go through it together."""
    which = torch.randint(len(OPERATIONS), (len(images),), device=images.device)
    strength = severity * torch.rand(len(images), device=images.device)
    result = images.clone()
    for place, operation in enumerate(OPERATIONS.values()):
        drawn = torch.nonzero(which == place)[:, 0]
        if len(drawn):
            result[drawn] = operation(images[drawn], strength[drawn])
    return result


def autocontrast(images: Tensor, strength: Tensor) -> Tensor:
    """Each channel stretched to the whole range."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    flat = high - low < 1 / 255
    return torch.where(flat, images, (images - low) / (high - low).clamp(min=1 / 255))


def equalize(images: Tensor, strength: Tensor) -> Tensor:
    """Each channel's values spread so that all 256 levels are about as frequent: Pillow's table, in whole numbers."""
    n, c = images.shape[:2]
    levels = (255 * images).round().long().clamp(0, 255).reshape(n * c, -1)
    counts = torch.zeros(n * c, 256, dtype=torch.long, device=images.device)
    counts.scatter_add_(1, levels, torch.ones_like(levels))
    of_brightest = counts.gather(1, levels.amax(1, keepdim=True))
    step = (levels.shape[1] - of_brightest) // 255  # pixels per level, if all were equal
    table = (step // 2 + counts.cumsum(1) - counts) // step.clamp(min=1)
    table = torch.where(step == 0, torch.arange(256, device=images.device), table.clamp(max=255))
    return (table.gather(1, levels) / 255).view_as(images).to(images)


def posterize(images: Tensor, strength: Tensor) -> Tensor:
    """Fewer levels: 4 bits, down to 1 at full strength."""
    bits = 2 ** (4 - (4 * strength).floor()).clamp(min=1).view(-1, 1, 1, 1)
    return (images * 255 / 256 * bits).floor() / bits * 256 / 255


def solarize(images: Tensor, strength: Tensor) -> Tensor:
    """What is brighter than a threshold is inverted."""
    return torch.where(images >= (1 - strength).view(-1, 1, 1, 1), 1 - images, images)


def rotate(images: Tensor, strength: Tensor) -> Tensor:
    """By up to 30° either way."""
    angle = _sign(strength) * strength * math.pi / 6
    cos, sin = torch.cos(angle), torch.sin(angle)
    zero, ratio = torch.zeros_like(cos), images.shape[2] / images.shape[3]  # coordinates are shares of either side
    return _moved(images, torch.stack([cos, -sin * ratio, zero, sin / ratio, cos, zero], 1))


def _along(place: int, most: float) -> Operation:
    """Changes one number of the identity map, by up to `most` either way."""

    def operation(images: Tensor, strength: Tensor) -> Tensor:
        matrices = torch.eye(2, 3, device=images.device, dtype=images.dtype).flatten().repeat(len(images), 1)
        matrices[:, place] = most * _sign(strength) * strength
        return _moved(images, matrices)

    return operation


OPERATIONS: dict[str, Operation] = {
    "autocontrast": autocontrast,
    "equalize": equalize,
    "posterize": posterize,
    "solarize": solarize,
    "rotate": rotate,
    "shear_x": _along(1, 0.3),
    "shear_y": _along(3, 0.3),
    "translate_x": _along(2, 2 / 3),  # by up to a third of the width
    "translate_y": _along(5, 2 / 3),
}


def _sign(like: Tensor) -> Tensor:
    return torch.where(torch.rand_like(like) < 0.5, -1.0, 1.0)


def _moved(images: Tensor, matrices: Tensor) -> Tensor:
    """Looked up at points moved by (N, 6) matrices, in coordinates from −1 to 1; black outside."""
    grid = F.affine_grid(matrices.view(-1, 2, 3), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)
