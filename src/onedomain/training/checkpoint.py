"""Checkpoints without pickle: nested state as safetensors, its structure as JSON in the header.

A file from a stranger can then at worst be unreadable; nothing in it is ever executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save

from onedomain.data.files import write_atomically
from onedomain.errors import UserError
from onedomain.networks.weights import read_tensors, short, storable

_TENSOR = "__tensor__"


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write nested dicts and lists of tensors and JSON values, atomically."""
    tensors: dict[str, torch.Tensor] = {}
    structure = _take_out_tensors(state, tensors)
    write_atomically(path, save(tensors, metadata={"structure": json.dumps(structure)}))


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """What `save_checkpoint` wrote; refuses anything else."""
    try:
        tensors, metadata = read_tensors(path, device)
        state = _put_tensors_back(json.loads(metadata["structure"]), tensors)
        if tensors:
            raise ValueError(f"a tensor {min(tensors)} has no place")
        if not isinstance(state, dict):
            raise ValueError("its structure is not a mapping")
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise UserError(
            str(path),
            f"is not a whole checkpoint ({short(error)}), and nothing in it was run",
            "a file written by onedomain; remove it to train from the start",
        ) from None
    return state


def _take_out_tensors(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        # Optimisers walk over raw memory: a moment in another layout than its weight would be read crosswise.
        channels_last = value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last)
        tensors[name] = storable(value, tensors)
        return {_TENSOR: name, "channels_last": channels_last and not value.is_contiguous()}
    if isinstance(value, dict):
        # JSON knows only texts as keys; an optimiser's state has numbers: both come back as they were.
        return {"dict": [[key, _take_out_tensors(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_take_out_tensors(item, tensors) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a checkpoint holds tensors and JSON values, not {type(value).__name__}")


def _put_tensors_back(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_put_tensors_back(item, tensors) for item in value]
    if isinstance(value, dict) and _TENSOR in value:
        tensor = tensors.pop(value[_TENSOR])  # once: many copies of it would fill the memory
        return tensor.contiguous(memory_format=torch.channels_last) if value["channels_last"] else tensor
    if isinstance(value, dict):
        return {key: _put_tensors_back(item, tensors) for key, item in value["dict"]}
    return value
