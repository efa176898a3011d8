"""ResNet-50 without its last layer, its parameters named as everywhere: public ImageNet weights load by name."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

EXPANSION = 4  # channels that a block gives, by those it works in


class Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 convolutions and a path around them; the 3×3 one takes the stride, as in the public weights."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * EXPANSION, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * EXPANSION)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != width * EXPANSION:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, width * EXPANSION, 1, stride, bias=False), nn.BatchNorm2d(width * EXPANSION)
            )

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return torch.relu(self.bn3(self.conv3(x)) + around)


class ResNet(nn.Module):
    """Images to maps of 1/32 of their sides; with `blocks` of (3, 4, 6, 3), ResNet-50: 23,508,032 parameters.

    Place i of a map lies at pixel 32·i: every stride looks at its first pixel.

    >>> ResNet(3, (1, 1, 1, 1))(torch.zeros(1, 3, 64, 65)).shape
    torch.Size([1, 2048, 2, 3])
    """

    def __init__(self, channels: int, blocks: Sequence[int] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.channels = 64
        self.layer1 = self._layer(64, blocks[0], stride=1)
        self.layer2 = self._layer(128, blocks[1], stride=2)
        self.layer3 = self._layer(256, blocks[2], stride=2)
        self.layer4 = self._layer(512, blocks[3], stride=2)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def _layer(self, width: int, count: int, stride: int) -> nn.Sequential:
        blocks = []
        for place in range(count):
            blocks.append(Bottleneck(self.channels, width, stride if place == 0 else 1))
            self.channels = width * EXPANSION
        return nn.Sequential(*blocks)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        maps: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return maps
