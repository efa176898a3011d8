"""The network of the paper's Digits experiments."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from onedomain.networks.registry import network, refuse_smaller

_SMALLEST_SIDE = 16  # two unpadded 5×5 convolutions, each followed by pooling, leave one pixel of 16


@network("lenet")
class LeNet(nn.Module):
    """conv5×5-64, pool, conv5×5-128, pool, fc-1024, fc-1024, softmax layer (paper, section 6).

    For 32×32×3 images and 10 classes it has 4,547,466 parameters. `features` is the paper's F, whose output z is
    that of the second fully-connected layer; `head` is its C. Feature maps larger than the 5×5 of a 32×32 image
    are averaged down to 5×5, so that the number of weights does not grow with the image.
    """

    embedding = "features"
    perturb = ("features.conv1", "features.conv2")

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        height, width, channels = image_shape
        refuse_smaller(_SMALLEST_SIDE, "lenet", image_shape)
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
        fits = rows <= 5 and columns <= 5
        self.features = nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(channels, 64, 5),
                pool1=nn.MaxPool2d(2),  # before ReLU: the same values and gradients, of a quarter of the pixels
                relu1=nn.ReLU(),
                conv2=nn.Conv2d(64, 128, 5),
                pool2=nn.MaxPool2d(2),
                relu2=nn.ReLU(),
                shrink=nn.Identity() if fits else nn.AdaptiveAvgPool2d((min(rows, 5), min(columns, 5))),
                flatten=nn.Flatten(),
                fc1=nn.Linear(128 * min(rows, 5) * min(columns, 5), 1024),
                relu3=nn.ReLU(),
                fc2=nn.Linear(1024, 1024),
                relu4=nn.ReLU(),
            )
        )
        self.head = nn.Linear(1024, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.features(images))
        return logits
