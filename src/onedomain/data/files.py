"""Writing files so that a crash, a full disk or a second writer never leaves half of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from onedomain.data.within import open_here, opened
from onedomain.errors import UserError

TEMPORARY = ".onedomain-"  # how files begin that a kill may leave half written

_ALLOWED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "a disk with room left; what was saved before is kept"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT), "a folder you may write to"),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), "a path whose parents are folders, and no links to any"),
    **dict.fromkeys((errno.ELOOP, errno.EMLINK), "a file of its own: no link, and no second name"),
}


@contextlib.contextmanager
def os_errors_are_user_errors(path: Path, what: str = "written") -> Iterator[None]:
    """Report a disk that is full, not writable or not readable in one line that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            str(path), f"cannot be {what} ({reason.lower()})", _ALLOWED.get(error.errno or 0, "")
        ) from error


def as_path(given: Any, field: str) -> Path:
    """What a caller gives as the name of a file or folder."""
    if not isinstance(given, (str, os.PathLike)) or str(given) == "" or "\0" in str(given):
        raise UserError(field, f"got {given!r:.50}", "a path")
    return Path(given)


def as_names(given: Any, field: str) -> tuple[str, ...]:
    """What a caller gives as names, such as those of classes."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(each, str) for each in given):
        raise UserError(field, f"got {given!r:.50}", "a list of names")
    return tuple(given)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write `path` whole or not at all: a temporary file beside it is filled, synced and renamed."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # a device would be replaced, too
        raise UserError(str(path), "is no file", "a file, there or not")
    with os_errors_are_user_errors(path), opened(path.parent) as (where, folder):
        temporary, handle = _temporary(where, folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                if sys.platform != "win32":  # renamed while it is locked: nobody takes it for a leftover
                    os.rename(temporary, where + path.name, src_dir_fd=folder, dst_dir_fd=folder)
            if sys.platform == "win32":
                Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _temporary(where: str, folder: int | None) -> tuple[str, int]:
    """A new file, locked as long as it is open: what `remove_leftovers` may lock, a killed process left behind."""
    while True:
        name = f"{where}{TEMPORARY}{secrets.token_hex(6)}"
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666, dir_fd=folder)
        try_lock(handle)
        if sys.platform == "win32" or os.fstat(handle).st_nlink:
            return name, handle
        os.close(handle)  # it was removed before it was locked


def try_lock(handle: int) -> bool | None:
    """Lock an open file for this process alone; None on a file system that knows no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        return None
    return True


def open_own(path: Path, mode: str, buffering: int = -1) -> TextIO:
    """Open a text file to write to, but not through a link: in a folder that others made it may lead elsewhere."""
    return open(  # type: ignore[return-value]
        path, mode, buffering, encoding="utf-8", opener=lambda name, flags: open_here(path, flags)
    )


def allocate(handle: int, size: int) -> None:
    """Take the room that a file needs on the disk before it is mapped: else a full disk would end in a signal."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    for start in range(os.lseek(handle, 0, os.SEEK_END), size, 2**24):
        os.write(handle, bytes(min(2**24, size - start)))


def make_folder(path: Path) -> None:
    with os_errors_are_user_errors(path), opened(path, make=True):
        pass


def changed_since(note: Path, made: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Note how a folder is filled; where that is noted already, return the first key whose value differs, with that."""
    if not note.exists():
        make_folder(note.parent)
        write_atomically(note, json.dumps(made, indent=2) + "\n")
        return None
    try:
        before = json.loads(read_file(note))
        return next(((key, before.get(key)) for key, value in made.items() if before.get(key) != value), None)
    except (ValueError, AttributeError, RecursionError):
        return next(iter(made)), None


def read_file(path: Path, most: int | None = None) -> bytes:
    """The content of a file of at most so many bytes. A pipe, which would be waited for without end, is no file."""
    with os_errors_are_user_errors(path, "read"):
        if not path.is_file():
            raise UserError(str(path), "is no file" if path.exists() else "is not there", "a file written by onedomain")
        if most is not None and path.stat().st_size > most:
            raise UserError(str(path), f"is of {path.stat().st_size:,} bytes", f"at most {most:,}")
        return path.read_bytes()


def to_json_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
