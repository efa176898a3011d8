"""Residual networks, their parameters named as everywhere: public ImageNet weights load by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from onedomain.networks.normalise import standardise
from onedomain.networks.registry import network, refuse_smaller

_SMALLEST_SIDE = 32  # halved five times, one pixel is left


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a path around them."""

    expansion = 1  # channels that a block gives, by those it works in

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _projection(channels, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)) + around)


class Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 convolutions and a path around them; the 3×3 one takes the stride, as in the public weights."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.downsample = _projection(channels, width * self.expansion, stride)

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

    def __init__(
        self, channels: int, blocks: Sequence[int] = (3, 4, 6, 3), block: type[BasicBlock | Bottleneck] = Bottleneck
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.channels = 64
        self.layer1 = self._layer(block, 64, blocks[0], stride=1)
        self.layer2 = self._layer(block, 128, blocks[1], stride=2)
        self.layer3 = self._layer(block, 256, blocks[2], stride=2)
        self.layer4 = self._layer(block, 512, blocks[3], stride=2)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def _layer(self, block: Any, width: int, count: int, stride: int) -> nn.Sequential:
        blocks = []
        for place in range(count):
            blocks.append(block(self.channels, width, stride if place == 0 else 1))
            self.channels = width * block.expansion
        return nn.Sequential(*blocks)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        maps: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return maps


@network("resnet18", blocks=(2, 2, 2, 2), block=BasicBlock)
@network("resnet50", blocks=(3, 4, 6, 3), block=Bottleneck)
class ResNetClassifier(ResNet):
    """ResNet-18 or ResNet-50: averaged maps and one linear layer. Images are expected from 0 to 1.

    He, Zhang, Ren and Sun, Deep Residual Learning, CVPR 2016. For the 1,000 classes of ImageNet they have 11,689,512
    and 25,557,032 parameters. z = F(x) are the averaged maps. Uncertain SDG perturbs the first two layers by default.
    """

    embedding = "avgpool"
    perturb = ("layer1", "layer2")

    def __init__(self, classes: int, image_shape: tuple[int, int, int], blocks: Sequence[int], block: Any) -> None:
        refuse_smaller(_SMALLEST_SIDE, "a ResNet", image_shape)
        super().__init__(image_shape[2], blocks, block)
        self.standardise = standardise(image_shape[2])
        self.avgpool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(self.channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.avgpool(super().forward(self.standardise(images))))
        return logits


def _projection(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """The path around a block that changes the number of channels, or the size."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
