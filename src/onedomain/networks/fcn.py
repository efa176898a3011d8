"""Fully convolutional networks: a class for every pixel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onedomain.networks.normalise import standardise
from onedomain.networks.registry import network, refuse_smaller
from onedomain.networks.resnet import ResNet

_SMALLEST_SIDE = 8


class BilinearUpsampling(nn.Module):
    """A transposed convolution of stride `factor` whose kernel is bilinear and stays so: it is not learned.

    Place i of the map lies at pixel `factor`·i, as strides of convolutions have it; beyond the last place the map goes
    on as it is there.

    >>> BilinearUpsampling(2)(torch.tensor([[[[0.0, 4.0]]]]), (2, 4))
    tensor([[[[0., 2., 4., 4.],
              [0., 2., 4., 4.]]]])
    """

    kernel: Tensor

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor
        slope = 1 - (torch.arange(2 * factor - 1) - (factor - 1)).abs() / factor
        self.register_buffer("kernel", torch.outer(slope, slope)[None, None], persistent=False)

    def forward(self, maps: Tensor, size: tuple[int, int]) -> Tensor:
        """Maps (N, C, h, w) at `size`, (height, width), of at most `factor` times h and w."""
        classes = maps.shape[1]
        beyond = F.pad(maps, (0, 1, 0, 1), mode="replicate")
        kernels = self.kernel.expand(classes, -1, -1, -1)
        larger = F.conv_transpose2d(beyond, kernels, stride=self.factor, padding=self.factor - 1, groups=classes)
        return larger[:, :, : size[0], : size[1]]


@network("fcn-32s")  # the paper's, for SYNTHIA
class FCN32s(nn.Module):
    """FCN-32s on ResNet-50, the paper's for SYNTHIA: 1×1 scores at 1/32 of the sides, brought to the image's size.

    `backbone` is the paper's F, whose output z is that of ResNet's last layer, `score` and `upscore` are its C. For 14
    classes it has 23,536,718 parameters. Images are expected from 0 to 1 and standardised inside.
    """

    embedding = "backbone.layer4"
    perturb = ("backbone.layer1", "backbone.layer2")

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        refuse_smaller(_SMALLEST_SIDE, "fcn-32s", image_shape)
        self.standardise = standardise(image_shape[2])
        self.backbone = ResNet(image_shape[2])
        self.score = _score(2048, classes)
        self.upscore = BilinearUpsampling(32)

    def forward(self, images: Tensor) -> Tensor:
        scores = self.score(self.backbone(self.standardise(images)))
        logits: Tensor = self.upscore(scores, images.shape[2:])
        return logits


@network("fcn-small")
class FCNSmall(nn.Module):
    """FCN for a CPU: scores at 1/8 of the sides from nine convolutions.

    `features` is F, whose output is z. Its last blocks look at points 2 and 4 places apart, so that a place sees about
    200 pixels per side. For 11 classes and colour images it has 556,395 parameters.
    """

    embedding = "features"
    perturb = ("features.stem", "features.block1")
    width = 96

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        refuse_smaller(_SMALLEST_SIDE, "fcn-small", image_shape)
        channels, width = image_shape[2], self.width
        self.standardise = standardise(channels)
        self.features = nn.Sequential()
        self.features.add_module("stem", nn.Sequential(_halving(channels, 32), _halving(32, 48)))
        self.features.add_module("reduce", _halving(48, width))
        for place, dilation in enumerate((1, 2, 4), start=1):
            self.features.add_module(f"block{place}", ResidualBlock(width, dilation))
        self.score = _score(width, classes)
        self.upscore = BilinearUpsampling(8)

    def forward(self, images: Tensor) -> Tensor:
        scores = self.score(self.features(self.standardise(images)))
        logits: Tensor = self.upscore(scores, images.shape[2:])
        return logits


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions of dilated points, and a path around them."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, 1, dilation, dilation, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, dilation, dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(inner)) + x)


def _halving(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())


def _score(channels: int, classes: int) -> nn.Conv2d:
    """1×1 scores of each class, all 0 at first, as in FCN: training starts from no opinion."""
    score = nn.Conv2d(channels, classes, 1)
    nn.init.zeros_(score.weight)
    assert score.bias is not None
    nn.init.zeros_(score.bias)
    return score
