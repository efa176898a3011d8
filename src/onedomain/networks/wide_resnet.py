"""Wide residual networks, the networks of the paper's CIFAR-10-C experiments."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from onedomain.errors import UserError
from onedomain.networks.registry import network, refuse_smaller

_SMALLEST_SIDE = 8  # halved twice, it leaves maps of 2×2


@network("wrn-16-4", depth=16, width=4)  # the paper's, for CIFAR-10-C
@network("wrn-10-1", depth=10, width=1)
class WideResNet(nn.Module):
    """WRN-depth-width: a 3×3 convolution to 16 channels, then three groups of residual blocks, BatchNorm throughout.

    Zagoruyko and Komodakis, Wide Residual Networks, BMVC 2016: BatchNorm and ReLU stand before each convolution, the
    channels are 16, 32 and 64 times the width, the second and third group halve the maps, and the last maps are
    averaged. WRN-16-4, the paper's, has two blocks per group and 2,748,890 parameters for 10 classes.

    z = F(x) are the averaged maps (256 numbers for width 4). Uncertain SDG perturbs the first convolution and the first
    group by default.
    """

    embedding = "features"
    perturb = ("features.conv", "features.group1")

    def __init__(self, classes: int, image_shape: tuple[int, int, int], depth: int, width: int) -> None:
        super().__init__()
        refuse_smaller(_SMALLEST_SIDE, f"wrn-{depth}-{width}", image_shape)
        blocks, rest = divmod(depth - 4, 6)
        if rest or blocks < 1:
            raise UserError("depth", f"got {depth}", "10, 16, 22, 28, …: six layers a block of each group, and four")
        sizes = [16, 16 * width, 32 * width, 64 * width]
        self.features = nn.Sequential(
            OrderedDict(
                conv=_convolution(image_shape[2], 16),
                group1=_group(sizes[0], sizes[1], blocks, stride=1),
                group2=_group(sizes[1], sizes[2], blocks, stride=2),
                group3=_group(sizes[2], sizes[3], blocks, stride=2),
                norm=nn.BatchNorm2d(sizes[3]),
                relu=nn.ReLU(),
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
            )
        )
        self.head = nn.Linear(sizes[3], classes)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.features(images))
        return logits


class Block(nn.Module):
    """Two convolutions, each after BatchNorm and ReLU, added to what came in."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), _convolution(inputs, outputs, stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(outputs), _convolution(outputs, outputs)
        self.shortcut = None if inputs == outputs else _convolution(inputs, outputs, stride, side=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ready = torch.relu(self.norm1(x))
        changed: torch.Tensor = self.conv2(torch.relu(self.norm2(self.conv1(ready))))
        return changed + (x if self.shortcut is None else self.shortcut(ready))


def _group(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
    first = Block(inputs, outputs, stride)
    return nn.Sequential(first, *(Block(outputs, outputs, 1) for _ in range(blocks - 1)))


def _convolution(inputs: int, outputs: int, stride: int = 1, side: int = 3) -> nn.Conv2d:
    convolution = nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution
