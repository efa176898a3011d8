"""Small files of named arrays beside a run: images and embeddings in the form in which they are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from onedomain.errors import UserError
from onedomain.files import make_folder, write_atomically

LONGEST_SIDE = 96  # of an image that is kept; larger ones are averaged down
MOST_FEATURES = 4096  # of an embedding; of larger ones, which are maps, the mean over their places is kept
SUFFIX = ".safetensors"
_ABOUT = "onedomain"  # the key of the file's metadata

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
ByteArray = np.ndarray[Any, np.dtype[np.uint8]]


def save_arrays(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays, and what they are of as JSON in the file's header, whole or not at all."""
    make_folder(path.parent)
    # Fortran order would be written as it lies in memory, and read crosswise.
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(path, save(content, metadata={_ABOUT: json.dumps(about)}))


def load_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `save_arrays` wrote, the arrays by name; refuses anything else."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})[_ABOUT])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        return dict(about), arrays
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise not_ours(path, error) from None


def not_ours(path: Path, error: Exception) -> UserError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
    return UserError(str(path), f"cannot be understood ({reason})", "a file written by onedomain")


def as_vectors(embedding: torch.Tensor) -> FloatArray:
    """z of each image as one vector of 16-bit floats, (N, D)."""
    if embedding[0].numel() > MOST_FEATURES and embedding.dim() > 2:
        embedding = embedding.flatten(2).mean(2)
    largest = torch.finfo(torch.float16).max
    vectors: FloatArray = embedding.flatten(1).float().clamp(-largest, largest).half().cpu().numpy()
    return vectors


def as_bytes(images: torch.Tensor, value_range: tuple[float, float], longest: int = LONGEST_SIDE) -> ByteArray:
    """(N, channels, height, width) as bytes of (N, height, width, channels), what is out of range cut off.

    Images with a side above `longest` are averaged down to it.
    """
    low, high = value_range
    unit = ((images.float() - low) / max(high - low, 1e-12)).clamp(0, 1)
    height, width = images.shape[2:]
    if max(height, width) > longest:
        scale = longest / max(height, width)
        unit = F.interpolate(unit, (max(1, round(height * scale)), max(1, round(width * scale))), mode="area")
    pixels: ByteArray = (255 * unit).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().cpu().numpy()
    return pixels
