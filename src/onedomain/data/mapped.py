"""An array in a file that is mapped into memory: a .npy file, as numpy writes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.files import allocate, make_folder, os_errors_are_user_errors
from onedomain.data.within import open_here, remove
from onedomain.errors import UserError


def new_map(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A file for an array of this shape, in the place of any that is there; its room on the disk is taken."""
    make_folder(path.parent)
    with os_errors_are_user_errors(path):
        remove(path)
        with os.fdopen(open_here(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), "rb+") as file:
            about = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, about)
            file.flush()
            start = file.tell()
            try:
                allocate(file.fileno(), start + int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize)
            except OSError:
                remove(path)
                raise
            return np.memmap(file, kind, "r+", start, shape)


def old_map(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """The array that `new_map` made here; refuses any other."""
    try:
        with os.fdopen(open_here(path, os.O_RDWR), "rb+") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("another version of the format")
            found, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
            size = start + int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
            if found != shape or dtype != kind or fortran:
                given = f"holds {dtype} of shape {found}"
                raise UserError(str(path), given, f"{np.dtype(kind)} of shape {shape}, as this run wrote")
            if os.fstat(file.fileno()).st_size != size:  # numpy would quietly lengthen a file that was cut
                raise ValueError("it was cut or lengthened")
            return np.memmap(file, kind, "r+", start, shape)
    except UserError:
        raise
    except Exception as error:  # numpy reads a header as Python's own parser does, and raises what that raises
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())[:100]
        raise UserError(str(path), f"cannot be read ({reason.lower()})", "the file that this run wrote") from None
