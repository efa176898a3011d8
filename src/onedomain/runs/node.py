"""What a node of a cluster does with a job: run its command there, and carry folders where storage is not shared."""

from __future__ import annotations

import io
import os
import platform
import secrets
import signal
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onedomain.data.files import TEMPORARY, make_folder
from onedomain.data.folders import LOCK, sole_use
from onedomain.runs.job import Job, start_process

BEGINS = "\0"  # before what is said of the start of a process
SECONDS_TO_WAIT = 90.0  # until the lock of a lost machine is given up


def run_job(job: Job, said: Any, home: str, cwd: Path, seen: Path, gpus: bool) -> tuple[int, str, bytes | None]:
    """A job's exit code, what it printed, and its run folder if that has to be brought back.

    `said` is the actor that is told all lines, `home` the node of the command that gave the job. A node that sees the
    file `seen` shares its storage. Ray's request to cancel comes as a KeyboardInterrupt.
    """
    import ray

    # Else a cluster that was started in the background of a shell, where SIGINT is ignored, would ignore the request.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def say(line: str) -> Any:
        return said.say.remote(job.name, line)

    shared = cwd.is_dir() and seen.is_file() and all((cwd / folder).is_dir() for folder in job.needs)
    say(f"{BEGINS}  # on {platform.node()}, {'in shared storage' if shared else 'with folders sent and brought back'}")
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        folders = [folder for folder in (job.folder, *job.needs) if folder]
        place, words = (cwd, job.command) if shared else (Path(scratch), _moved(job.command, folders))
        if shared and job.folder:
            # The process of a lost worker ends, but perhaps a moment later: no two may write to one folder.
            with sole_use(cwd / job.folder, seconds=SECONDS_TO_WAIT):
                pass
        if not shared:
            fetch: Any = ray.remote(_pack).options(num_cpus=0, scheduling_strategy=fixed_to(home))
            for folder in folders:
                packed = fetch.remote(cwd / folder).future().result()  # `ray.get` would give our CPUs away meanwhile
                if packed is not None:
                    unpack(packed, place / _inside(folder))
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "") if gpus else ""
        words = (sys.executable, *words[1:])
        process = start_process(words, printed, cwd=place, CUDA_VISIBLE_DEVICES=devices)
        reader = threading.Thread(target=lambda: [say(line) for line in process.stderr or ()])
        reader.start()
        while reader.is_alive():
            try:
                reader.join(0.1)
            except KeyboardInterrupt:
                process.terminate()
        code = process.wait()
        say("\n").future().result()  # when that was told, all was
        printed.seek(0)
        brought = None if shared or job.folder is None else _pack(place / _inside(job.folder))
        return code, printed.read(), brought


def fixed_to(node: str) -> Any:
    """On this node, and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


@contextmanager
def probe(folder: Path) -> Iterator[Path]:
    """A file in `folder` that nothing else is called, to be looked for on other machines."""
    make_folder(folder)
    file = folder.resolve() / f"{TEMPORARY}{secrets.token_hex(8)}"
    file.touch()
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _inside(folder: Path) -> Path:
    """Where a folder lies below another one that stands for this machine's storage."""
    return Path(*(part for part in folder.parts if part not in (folder.anchor, "..")))


def _moved(command: tuple[str, ...], folders: list[Path]) -> tuple[str, ...]:
    moved = {str(folder): str(_inside(folder)) for folder in folders}
    return tuple(moved.get(word, word) for word in command)


def _pack(folder: Path) -> bytes | None:
    """All files of a folder; None if there are none."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != LOCK]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", strict_timestamps=False) as archive:
        for path in files:
            archive.write(path, path.relative_to(folder))
    return packed.getvalue() if files else None


def unpack(packed: bytes, folder: Path) -> None:
    """Put what was packed in the place of what is in the folder."""
    make_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=TEMPORARY) as temporary:
        new, old = Path(temporary) / "new", Path(temporary) / "old"
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
