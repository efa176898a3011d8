from __future__ import annotations

import os
import subprocess
import sys

import pytest

from onedomain.data.files import make_folder, read_file, write_atomically
from onedomain.errors import UserError


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"a.txt: cannot be written \(no space left on device\).*room left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_write_that_the_system_really_refuses_is_one_line(tmp_path):
    # The kernel itself stops the write: no file of this process may grow beyond 1,000 bytes.
    code = f"""
import resource, signal
from pathlib import Path
from onedomain.errors import UserError
from onedomain.data.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write_atomically(Path({str(tmp_path / "a")!r}), b"x" * 900)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path({str(tmp_path / "a")!r}), b"y" * 5000)
except UserError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "cannot be written (file too large)" in printed
    assert (tmp_path / "a").read_bytes() == b"x" * 900
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        make_folder(tmp_path / "file" / "runs")


def test_written_files_have_the_usual_permissions(tmp_path):
    write_atomically(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_file_is_read(tmp_path, make):
    make(tmp_path / "run.yaml")
    with pytest.raises(UserError, match="run.yaml: is no file"):
        read_file(tmp_path / "run.yaml")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "run.yaml").write_bytes(bytes(11))
    with pytest.raises(UserError, match="is of 11 bytes; allowed: at most 10"):
        read_file(tmp_path / "run.yaml", 10)
