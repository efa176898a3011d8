"""Files of weights: plain safetensors, readable by any other tool."""

from __future__ import annotations

import errno
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from onedomain.data.files import write_atomically
from onedomain.errors import UserError


def save_weights(path: Path, weights: dict[str, torch.Tensor]) -> None:
    """A `state_dict` as plain safetensors, readable by any other tool."""
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        tensors[name] = storable(tensor, tensors)
    write_atomically(path, save(tensors))


def load_weights(path: Path, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
    try:
        return read_tensors(path, device)[0]
    except (SafetensorError, OSError) as error:
        raise UserError(str(path), f"holds no weights ({short(error)})", "a safetensors file") from None


def read_tensors(path: Path, device: torch.device | str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """All tensors of a safetensors file by their names, and the texts of its header."""
    if not path.is_file():  # a pipe would be waited for without end
        raise FileNotFoundError(errno.ENOENT, "it is no file", str(path))
    with safe_open(path, framework="pt", device=str(device)) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 (not a dict)


def short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def storable(tensor: torch.Tensor, others: dict[str, torch.Tensor]) -> torch.Tensor:
    """Contiguous, and not sharing memory with another tensor of the file (as tied weights do)."""
    tensor = tensor.detach().contiguous()
    shared = any(tensor.data_ptr() == other.data_ptr() for other in others.values() if other.numel())
    return tensor.clone() if shared else tensor
