"""Small files of named arrays beside a run, such as images and embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from onedomain.data.files import make_folder, write_atomically
from onedomain.errors import UserError

SUFFIX = ".safetensors"
_ABOUT = "onedomain"  # the key of the file's metadata

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
ByteArray = np.ndarray[Any, np.dtype[np.uint8]]


def save_arrays(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays, and what they are of as JSON in the file's header, whole or not at all."""
    make_folder(path.parent)
    # An array in Fortran order would be written as it is in memory, and read back transposed.
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
