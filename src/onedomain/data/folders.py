"""A folder that is written to: by one process at a time, and never through a link that leads out of it."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from onedomain.data.files import TEMPORARY, make_folder, os_errors_are_user_errors
from onedomain.errors import UserError

LOCK = ".lock"
SECONDS_BETWEEN_TRIES = 0.2
_NOT_SUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # by file systems that know no locks


@contextmanager
def sole_use(
    folder: Path,
    *,
    seconds: float = 0.0,
    say: Callable[[str], None] = lambda text: None,
    deep: bool = True,
) -> Iterator[tuple[int, ...]]:
    """Keep other processes out of a folder while it is written to, for so many seconds waiting for them to end.

    Refuses a folder with links in it, and removes what a killed process left half written; only its own entries are
    looked at if not `deep`, since others may write to its sub-folders. Processes that keep open the file descriptors
    that it yields hold the folder even if this one is killed.
    """
    new = not folder.exists()
    make_folder(folder)
    refuse_links(folder, deep)
    file = None if sys.platform == "win32" else _locked(folder, seconds, say)
    try:
        _remove_leftovers(folder, deep)
        yield () if file is None else (file.fileno(),)
    finally:
        if file is not None:
            # Removed while it is held: whoever waits for it sees that it is another file now, and tries again.
            (folder / LOCK).unlink(missing_ok=True)
            file.close()
        if new:
            with suppress(OSError):  # it holds something
                folder.rmdir()


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
    import fcntl

    until, told = time.monotonic() + seconds, False
    while True:
        make_folder(folder)  # another call may just have removed it as empty
        file = None
        try:
            file = _opened(folder / LOCK)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat((folder / LOCK).stat(), os.fstat(file.fileno())):
                return file
        except FileNotFoundError:
            pass  # removed by the call that held it: the next try makes another
        except BlockingIOError:
            if time.monotonic() >= until:
                given = f"{folder} is in use by another call"
                raise UserError("out", given, "wait until it ends, or another --out") from None
            if not told:
                say(f"{folder} is in use: waiting for processes of another call")
            told = True
            time.sleep(SECONDS_BETWEEN_TRIES)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            say(f"note: {folder} cannot be locked here; let no second call write to it")
            return None
        if file is not None:
            file.close()


def _opened(path: Path) -> IO[bytes]:
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb+")
    except FileNotFoundError:
        raise
    except OSError:
        with os_errors_are_user_errors(path):
            raise


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
    for entry in list(_entries(folder, deep)):
        if entry.name.startswith(TEMPORARY) and entry.is_file(follow_symlinks=False):
            Path(entry.path).unlink(missing_ok=True)


def _entries(folder: Path, deep: bool) -> Iterator[os.DirEntry[str]]:
    """Everything in the folder and, if `deep`, below it; links are not followed."""
    with os_errors_are_user_errors(folder):
        inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in inside:
        yield entry
        if deep and entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), deep)
