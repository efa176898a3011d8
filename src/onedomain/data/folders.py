"""A folder that is written to: by one process at a time, and never through a link that leads out of it."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from onedomain.data.files import TEMPORARY, make_folder, os_errors_are_user_errors, try_lock
from onedomain.data.progress import say as say_to_the_user
from onedomain.data.within import beneath, open_here, remove
from onedomain.errors import UserError

LOCK = ".lock"
SECONDS_BETWEEN_TRIES = 0.2
SECONDS_TO_WAIT = 15.0  # for a call that writes its results, or ends: neither takes longer


@contextmanager
def sole_use(
    folder: Path, *, seconds: float = 0.0, say: Callable[[str], None] = say_to_the_user, deep: bool = True
) -> Iterator[tuple[int, ...]]:
    """Keep other processes out of a folder while it is written to, for so many seconds waiting for them to end.

    Refuses a folder with links in it, and removes what a killed process left half written; only its own entries are
    looked at if not `deep`, since others may write to its sub-folders. Processes that keep open the file descriptors
    that it yields hold the folder even if this one is killed.
    """
    new = not folder.exists()
    with beneath(folder):
        make_folder(folder)
        file = None if sys.platform == "win32" else _locked(folder, seconds, say)
        try:
            refuse_links(folder, deep)  # not sooner: what another call writes at this moment comes and goes
            _remove_leftovers(folder, deep)
            yield () if file is None else (file.fileno(),)
        finally:
            if file is not None:
                # Removed while it is held: whoever waits for it sees that it is another file now, and tries again.
                with suppress(OSError):
                    remove(folder / LOCK)
                file.close()
            if new:
                with suppress(OSError):  # it holds something
                    folder.rmdir()


@contextmanager
def tidied(folder: Path) -> Iterator[None]:
    """A folder for results that others may write to at the same time: what killed processes left in it is removed."""
    with beneath(folder):
        make_folder(folder)
        _remove_leftovers(folder, deep=False)
        yield


def in_use(folder: Path) -> bool:
    """Whether another process writes to the folder at this moment."""
    if sys.platform == "win32" or not (folder / LOCK).is_file():
        return False
    import fcntl

    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _locked(folder: Path, seconds: float, say: Callable[[str], None]) -> IO[bytes] | None:
    """The lock's file, held; None on a file system that knows no locks."""
    until, told = time.monotonic() + seconds, False
    while True:
        make_folder(folder)  # another call may just have removed it as empty
        with os_errors_are_user_errors(folder / LOCK), suppress(FileNotFoundError):
            file = os.fdopen(open_here(folder / LOCK, os.O_RDWR | os.O_CREAT), "rb+")
            locked = try_lock(file.fileno())
            if locked is None:
                say(f"note: {folder} cannot be locked here; let no second call write to it")
            elif locked is False:
                if time.monotonic() >= until:
                    given = f"{folder} is in use by another call"
                    raise UserError("out", given, "wait until it ends, or another --out")
                if not told:
                    say(f"{folder} is in use: waiting for another call to end")
                told = True
                time.sleep(SECONDS_BETWEEN_TRIES)
            if locked is None or (locked and os.fstat(file.fileno()).st_nlink):
                return file
            file.close()  # the call that held it removed it: the next try makes another


def holds_anything(folder: Path) -> bool:
    """Whether there is anything in the folder but what a killed process may leave."""
    return any(entry.name != LOCK and not entry.name.startswith(TEMPORARY) for entry in folder.iterdir())


def refuse_links(folder: Path, deep: bool = True) -> None:
    """A folder that others made may hold links: what is written there would be written elsewhere."""
    for entry in _entries(folder, deep):
        mode = entry.stat(follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            what = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
            raise UserError(entry.path, f"is {what}, inside a folder that is written to", "files and folders alone")


def _remove_leftovers(folder: Path, deep: bool) -> None:
    """Files that a killed process was writing; those that another one writes now are locked."""
    for entry in list(_entries(folder, deep)):
        if entry.name.startswith(TEMPORARY):
            with suppress(OSError):
                handle = open_here(Path(entry.path), os.O_RDWR)
                if try_lock(handle) is not False:
                    remove(Path(entry.path))
                os.close(handle)


def _entries(folder: Path, deep: bool) -> Iterator[os.DirEntry[str]]:
    """Everything in the folder and, if `deep`, below it; links are not followed."""
    with os_errors_are_user_errors(folder):
        inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in inside:
        yield entry
        if deep and entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), deep)
