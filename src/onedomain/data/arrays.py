"""Small files of named arrays beside a run, such as images and embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from onedomain.data.files import make_folder, write_atomically
from onedomain.errors import UserError

SUFFIX = ".safetensors"
ALLOWED = "a file written by onedomain"
_ABOUT = "onedomain"  # the key of the file's metadata

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
ByteArray = np.ndarray[Any, np.dtype[np.uint8]]


def save_arrays(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays, and what they are of as JSON in the file's header, whole or not at all."""
    make_folder(path.parent)
    # An array in Fortran order would be written as it is in memory, and read back transposed.
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(path, save(content, metadata={_ABOUT: json.dumps(about)}))


class Form(NamedTuple):
    """What an array must be: its kinds of numbers as numpy names them, and its sizes.

    A size is a number, or a name: arrays that name the same size must agree. `below` is where its whole numbers end.
    """

    kinds: str
    sizes: tuple[int | str, ...]
    needed: bool = True
    finite: bool = True
    below: str | int = ""


def check_forms(
    path: Path, arrays: Mapping[str, np.ndarray], forms: Mapping[str, Form], **known: int
) -> dict[str, int]:
    """Refuse arrays of another form; those that no form is given for are passed over. Returns the named sizes."""
    sizes: dict[str, int] = dict(known)
    for name, form in forms.items():
        if name not in arrays:
            if form.needed:
                raise UserError(str(path), f"has no array {name!r}", ALLOWED)
            continue
        array = arrays[name]
        fits = array.dtype.kind in form.kinds and array.ndim == len(form.sizes)
        if fits:
            wanted = tuple(
                size if isinstance(size, int) else sizes.setdefault(size, found)
                for size, found in zip(form.sizes, array.shape, strict=True)
            )
        if not fits or array.shape != wanted:
            raise UserError(str(path), f"{name} is {array.dtype} of shape {array.shape}", ALLOWED)
        if array.dtype.kind == "f" and form.finite and not np.isfinite(array).all():
            raise UserError(str(path), f"{name} has a number that is not finite", ALLOWED)
        end = sizes.get(form.below) if isinstance(form.below, str) else form.below
        if end is not None and array.size and not (array.min() >= 0 and array.max() < end):
            raise UserError(str(path), f"{name} has a number below 0 or from {end} on", ALLOWED)
    return sizes


def load_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `save_arrays` wrote, the arrays by name; refuses anything else."""
    try:
        if not path.is_file():  # a pipe would be waited for without end
            raise ValueError("it is no file")
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})[_ABOUT])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        return dict(about), arrays
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise not_ours(path, error) from None


def not_ours(path: Path, error: Exception) -> UserError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
    return UserError(str(path), f"cannot be understood ({reason})", ALLOWED)
