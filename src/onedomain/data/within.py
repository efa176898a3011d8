"""Writing inside a folder that others made: no link below it is followed, also none that is made meanwhile.

Folders are opened one below the other, and files by their name in the folder that is open: a path would be looked up
anew each time. Where the system has no such calls, links are refused before anything is written (`folders.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RUN = "run.yaml"  # is in every run folder
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_BY_FOLDER = {os.open, os.mkdir, os.unlink, os.rename} <= os.supports_dir_fd
_held: list[Path] = []  # below these no link is followed


@contextmanager
def beneath(folder: Path) -> Iterator[None]:
    """Follow no link below this folder, and below the run folder that it lies in, if it does."""
    here = folder.absolute()
    root = next((each for each in reversed([here, *here.parents]) if (each / RUN).is_file()), here)
    _held.append(root)
    try:
        yield
    finally:
        _held.remove(root)


@contextmanager
def opened(folder: Path, make: bool = False) -> Iterator[tuple[str, int | None]]:
    """The folder as what stands before a name in it, and the descriptor that this is relative to."""
    if not _BY_FOLDER:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        yield f"{folder}{os.sep}", None
        return
    here = folder.absolute()
    root = min((each for each in _held if here.is_relative_to(each)), key=lambda each: len(each.parts), default=here)
    if make:
        root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, _FOLDER)
    try:
        for part in here.relative_to(root).parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _FOLDER | _NO_LINK, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield "", handle
    finally:
        os.close(handle)


def open_here(path: Path, flags: int) -> int:
    """A descriptor of a file of ours: no link, no pipe, and without a second name, whose content would change too."""
    with opened(path.parent) as (where, folder):
        # A pipe would be waited for without end.
        handle = os.open(where + path.name, flags | _NO_LINK | getattr(os, "O_NONBLOCK", 0), 0o666, dir_fd=folder)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        told = "It has a second name elsewhere" if stat.S_ISREG(found.st_mode) else "It is no file"
        raise OSError(errno.EMLINK, told, str(path))
    return handle


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    with opened(path.parent) as (where, folder), suppress(FileNotFoundError):
        os.unlink(where + path.name, dir_fd=folder)
