"""Writing files so that a crash, a full disk or a second writer never leaves half of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from onedomain.errors import UserError

TEMPORARY = ".onedomain-"  # how files begin that a kill may leave half written

_ALLOWED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "a disk with room left; what was saved before is kept"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT), "a folder you may write to"),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), "a path whose parents are folders"),
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


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write `path` whole or not at all: a temporary file beside it is filled, synced and renamed."""
    data = content.encode() if isinstance(content, str) else content
    with os_errors_are_user_errors(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes files for the owner alone; results are to be shared like any other file.
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def open_own(path: Path, mode: str, buffering: int = -1) -> TextIO:
    """Open a text file to write to, but not through a link: in a folder that others made it may lead elsewhere."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)

    return open(path, mode, buffering, encoding="utf-8", opener=opener)  # type: ignore[return-value]


def allocate(path: Path, size: int) -> None:
    """Take the room that a file needs on the disk before it is mapped: else a full disk would end in a signal."""
    with os_errors_are_user_errors(path), path.open("rb+") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.seek(0, os.SEEK_END)
            for start in range(file.tell(), size, 2**24):
                file.write(bytes(min(2**24, size - start)))


def make_folder(path: Path) -> None:
    with os_errors_are_user_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def changed_since(note: Path, made: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Note how a folder is filled; where that is noted already, return the first key whose value differs, with that."""
    if not note.exists():
        make_folder(note.parent)
        write_atomically(note, json.dumps(made, indent=2) + "\n")
        return None
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
        return next(((key, before.get(key)) for key, value in made.items() if before.get(key) != value), None)
    except (ValueError, AttributeError):
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
