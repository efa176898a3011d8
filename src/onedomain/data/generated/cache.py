"""Arrays that take seconds to make, kept on disk until the code or a library that shapes them changes."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.files import make_folder, write_atomically
from onedomain.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]

# Another release of one of these may draw, scale or shuffle otherwise, or carry other data.
SHAPING_LIBRARIES = ("pillow", "matplotlib", "scikit-learn", "mlxtend", "numpy")
_DIGEST = "sha256"  # the entry of the file that holds the checksum of the others


def cache_folder() -> Path:
    """`ONEDOMAIN_CACHE`, or the user's cache folder of this system."""
    if given := os.environ.get("ONEDOMAIN_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("onedomain"))


def cache_file(name: str, version: int) -> Path:
    """Where `cached(name, version, …)` keeps its arrays: its own file for each set of library versions."""
    key = hashlib.sha256(repr(_library_versions()).encode()).hexdigest()[:12]
    return cache_folder() / f"{name}-v{version}-{key}.npz"


def cached(name: str, version: int, build: Callable[[], Arrays]) -> Arrays:
    """What `build()` gives, from the cache if it is there and whole.

    Raise `version` whenever `build` changes what it makes. A damaged file is built again; a folder that
    cannot be written to costs only the time of building. Either is told in one line on standard error.
    """
    path = cache_file(name, version)
    try:
        return _read(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    # A damaged zip or array header raises nearly anything: zlib.error, BadZipFile, KeyError, ValueError …
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        _warn(f"cache file {path} cannot be used ({reason}): building it again")
    arrays = build()
    try:
        _write(path, arrays)
    except UserError as error:
        _warn_once(f"going on without the cache: {error}")
    return arrays


def _read(path: Path) -> Arrays:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    if str(arrays.pop(_DIGEST)) != _checksum(arrays):
        raise ValueError("its checksum is wrong")
    return arrays


def _write(path: Path, arrays: Arrays) -> None:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays, **{_DIGEST: np.array(_checksum(arrays))})
    make_folder(path.parent)
    write_atomically(path, content.getvalue())


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(repr((key, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _library_versions() -> list[tuple[str, str]]:
    versions = []
    for library in SHAPING_LIBRARIES:
        try:
            versions.append((library, metadata.version(library)))
        except metadata.PackageNotFoundError:
            versions.append((library, "none"))
    return versions


def _warn(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr)


@functools.cache
def _warn_once(line: str) -> None:
    _warn(line)
