"""Arrays that take seconds to make, kept on disk until the code or a library that shapes them changes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

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
    cannot be written to costs the time of building, nothing more. Either is told in a line on standard error.
    """
    path = cache_file(name, version)
    try:
        return _read(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    # A damaged zip or array header raises nearly anything: zlib.error, BadZipFile, KeyError, ValueError …
    except Exception as error:
        _warn(f"cache file {path} cannot be used ({_reason(error)}): building it again")
    arrays = build()
    try:
        _write(path, arrays)
    except OSError as error:
        _warn_once(f"cannot write to the cache folder {path.parent} ({_reason(error)}): going on without it")
    return arrays


def _read(path: Path) -> Arrays:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    if str(arrays.pop(_DIGEST)) != _checksum(arrays):
        raise ValueError("its checksum is wrong")
    return arrays


def _write(path: Path, arrays: Arrays) -> None:
    """Write beside the file and rename: a reader, or a second writer, sees a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f"{path.stem}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays, **{_DIGEST: np.array(_checksum(arrays))})
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


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


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def _warn(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr)


@functools.cache
def _warn_once(line: str) -> None:
    _warn(line)
