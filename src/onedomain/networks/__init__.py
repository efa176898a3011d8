"""Networks, and the contract by which any `nn.Module` takes part: its layers are named, not rewritten."""

from onedomain.networks.fcn import FCN32s, FCNSmall
from onedomain.networks.lenet import LeNet
from onedomain.networks.named import NamedNetwork, build_network, own_network
from onedomain.networks.registry import network, network_names
from onedomain.networks.wide_resnet import WideResNet

__all__ = [
    "FCN32s",
    "FCNSmall",
    "LeNet",
    "NamedNetwork",
    "WideResNet",
    "build_network",
    "network",
    "network_names",
    "own_network",
]
