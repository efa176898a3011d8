"""Every operation on files of a process is counted, and one of them can be its last: the process is killed before it.

Of a write that is the last, half reaches the file. Writing into a map is no operation of its own: its flush is.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import signal
import sys
from pathlib import Path
from typing import Any

CALLS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "fcntl.flock")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_open = io.open


class Operations:
    """Counts what this process does below `root`, and kills it before the operation of the number `last`.

    With `full` it is not killed: from there on nothing that needs room on the disk is done.
    """

    def __init__(self, root: Path, last: int | None, full: bool) -> None:
        self.root, self.last, self.full, self.count = root, last, full, 0
        sys.addaudithook(self._heard)
        for name in ("fsync", "posix_fallocate"):
            setattr(os, name, self._counted(getattr(os, name)))
        builtins.open = io.open = self._opened  # type: ignore[assignment]
        operations = self

        class Map(mmap.mmap):
            def flush(self, *given: Any) -> None:
                if operations.one():
                    operations.die()
                super().flush(*given)

        mmap.mmap = Map  # type: ignore[misc]

    def one(self, room: bool = False) -> bool:
        """One more, which may need room; whether it is the last. Anything but a write is not begun then."""
        self.count += 1
        if self.full and room and self.last is not None and self.count >= self.last:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.count == self.last and not self.full

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def inside(self, place: Any) -> bool:
        """Names are relative to the folder that the process is in, which is below the root, or to an open one."""
        if isinstance(place, int):
            return Path(f"/proc/self/fd/{place}").readlink().is_relative_to(self.root)
        path = Path(os.fsdecode(place))
        return not path.is_absolute() or path.is_relative_to(self.root)

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            counts = given[2] is not None and bool(given[2] & WRITING) and not isinstance(given[0], int)
        else:
            counts = event in CALLS
        room = event == "os.mkdir" or (event == "open" and bool(given[2] & os.O_CREAT))
        if counts and self.inside(given[0]) and self.one(room):
            self.die()

    def _counted(self, call: Any) -> Any:
        def counted(handle: int, *given: Any) -> Any:
            if self.inside(handle) and self.one(call.__name__ == "posix_fallocate"):
                self.die()
            return call(handle, *given)

        return counted

    def _opened(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, *args: Any, **more: Any
    ) -> Any:
        if not set(mode) & set("wax+") or not self.inside(file):
            return _open(file, mode, buffering, encoding, *args, **more)
        operations = self

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                if operations.one(room=True):
                    super().write(memoryview(data)[: len(data) // 2])
                    operations.die()
                return super().write(data)

        raw = Raw(file, mode.replace("b", "").replace("t", ""), opener=more.get("opener"))
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, line_buffering=buffering == 1)
