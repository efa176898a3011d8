"""What a network does to its images first."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Of ImageNet's colours: what most public weights were trained with.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Normalise(nn.Module):
    """(x − mean) / deviation of each channel of images from 0 to 1. Grey images are given to all channels alike.

    Both numbers follow from the kind of network: they are in no file of weights.

    >>> Normalise([0.5] * 3, [0.25] * 3)(torch.ones(1, 1, 1, 1)).flatten()
    tensor([2., 2., 2.])
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation).view(1, -1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.deviation


def standardise(channels: int) -> Normalise:
    """As ImageNet's colours are; other channels than colours have the middle and a quarter of the range."""
    return Normalise(MEAN, DEVIATION) if channels == 3 else Normalise((0.5,) * channels, (0.25,) * channels)
