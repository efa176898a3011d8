from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from onedomain.data.arrays import load_arrays, save_arrays
from onedomain.data.generated.cache import cache_file, cached
from tests.conftest import ROOT

SOURCES = ROOT / "src"


class Builder:
    """Builds the same arrays each time, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.calls += 1
        return {"images": np.arange(3000, dtype=np.uint8).reshape(10, 10, 30), "labels": np.arange(10)}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEDOMAIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def assert_whole(arrays: dict[str, np.ndarray]) -> None:
    expected = Builder()()
    assert arrays.keys() == expected.keys()
    for key, array in expected.items():
        assert arrays[key].dtype == array.dtype
        np.testing.assert_array_equal(arrays[key], array)


def test_the_second_call_reads_what_the_first_has_built(capfd: pytest.CaptureFixture[str]) -> None:
    build = Builder()
    assert_whole(cached("x", 1, build))
    assert_whole(cached("x", 1, build))
    assert build.calls == 1
    assert capfd.readouterr().err == ""


def test_a_new_version_is_built_anew() -> None:
    build = Builder()
    cached("x", 1, build)
    cached("x", 2, build)
    cached("y", 1, build)
    assert build.calls == 3


@pytest.mark.parametrize("library", ["pillow", "matplotlib", "scikit-learn", "mlxtend", "numpy"])
def test_another_release_of_a_library_is_built_anew(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    cached("x", 1, build)
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "99.0" if name == library else real(name))
    cached("x", 1, build)
    assert build.calls == 2


def test_without_the_variable_the_user_cache_folder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("ONEDOMAIN_CACHE")
    assert cache_file("x", 1).parent == Path(pooch.os_cache("onedomain"))


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(4000))


def _other_pixels(path: Path) -> None:
    """A valid file whose arrays are not those the checksum was taken of."""
    about, arrays = load_arrays(path)
    arrays["images"][0, 0, 0] += 1
    save_arrays(path, about, arrays)


def _without_checksum(path: Path) -> None:
    save_arrays(path, {}, Builder()())


@pytest.mark.parametrize("damage", [_truncate, _empty, _garbage, _other_pixels, _without_checksum])
def test_a_damaged_file_is_built_again_with_one_line(damage, capfd: pytest.CaptureFixture[str]) -> None:
    build = Builder()
    cached("x", 1, build)
    damage(cache_file("x", 1))
    assert_whole(cached("x", 1, build))
    assert build.calls == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("warning: ")
    assert str(cache_file("x", 1)) in lines[0]
    assert_whole(cached("x", 1, build))
    assert build.calls == 2, "the damaged file was not replaced"


class _Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_in_the_cache_is_never_run(tmp_path: Path) -> None:
    build = Builder()
    cached("x", 1, build)
    with cache_file("x", 1).open("wb") as file:
        np.savez(file, images=np.array([_Trap(tmp_path / "sprung")], dtype=object))
    assert_whole(cached("x", 1, build))
    assert build.calls == 2
    assert not (tmp_path / "sprung").exists()


def test_an_unwritable_folder_costs_one_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder.write_text("a file where the folder should be: permissions do not stop root, this does")
    build = Builder()
    assert_whole(cached("x", 1, build))
    assert_whole(cached("x", 1, build))
    assert build.calls == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, "told once a process, not once a call"
    assert str(folder) in lines[0]


def test_a_full_disk_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    assert_whole(cached("x", 1, Builder()))
    assert list(folder.iterdir()) == []
    assert os.strerror(errno.ENOSPC).lower() in capfd.readouterr().err


RACE = """
import pathlib, sys, time
import numpy as np
from onedomain.data.generated.cache import cache_file, cached

def build():
    return {"x": np.full((512, 1024), 7, dtype=np.uint8)}

while time.time() < float(sys.argv[1]):
    time.sleep(0.001)
for _ in range(25):
    assert (cached("race", 1, build)["x"] == 7).all()
    cache_file("race", 1).unlink(missing_ok=True)
cached("race", 1, build)
"""


def test_processes_that_build_at_once_never_see_a_broken_file(folder: Path) -> None:
    start = str(time.time() + 1.5)
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", RACE, start]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    assert errors == ["", "", ""], "a reader saw a half-written file"
    assert [path.suffix for path in folder.iterdir()] == [".safetensors"]
