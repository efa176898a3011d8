"""Networks, and the contract by which any `nn.Module` takes part: its layers are named, not rewritten."""

from onedomain.networks.fcn import FCN32s, FCNSmall
from onedomain.networks.lenet import LeNet
from onedomain.networks.named import NamedNetwork, build_network, own_network

__all__ = ["FCN32s", "FCNSmall", "LeNet", "NamedNetwork", "build_network", "own_network"]
