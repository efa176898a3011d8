"""One writer per folder, and nothing written through a link."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from onedomain.data.files import TEMPORARY, open_own
from onedomain.data.folders import LOCK, holds_anything, in_use, sole_use
from onedomain.data.mapped import new_map, old_map
from onedomain.errors import UserError
from tests.conftest import ROOT

HOLDER = """
    import sys, time
    from pathlib import Path
    from onedomain.data.folders import sole_use
    with sole_use(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that holds a folder for so many seconds."""
    started = []

    def start(folder, seconds):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(HOLDER), str(folder), str(seconds)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_process_is_told_at_once(tmp_path, hold):
    hold(tmp_path, 60)
    assert in_use(tmp_path)
    begun = time.monotonic()
    with pytest.raises(UserError, match="is in use by another call"), sole_use(tmp_path):
        pass
    assert time.monotonic() - begun < 5


def test_a_folder_is_free_when_its_process_was_killed(tmp_path, hold):
    process = hold(tmp_path, 60)
    process.kill()
    process.wait()
    assert (tmp_path / LOCK).exists()
    assert not in_use(tmp_path)
    with sole_use(tmp_path):
        assert not in_use(tmp_path / "elsewhere")
    assert not list(tmp_path.iterdir())  # nothing is left of a lock


def test_it_waits_as_long_as_it_is_told_to(tmp_path, hold):
    hold(tmp_path, 1)
    told = []
    with sole_use(tmp_path, seconds=30, say=told.append):
        pass
    assert len(told) == 1
    assert "waiting" in told[0]


def test_two_that_wait_never_hold_it_together(tmp_path):
    """The lock's file is removed by each that held it: whoever waited must not hold one that is gone."""
    program = """
        import sys, time
        from pathlib import Path
        from onedomain.data.folders import sole_use
        folder, note = Path(sys.argv[1]), Path(sys.argv[2])
        for _ in range(20):
            with sole_use(folder, seconds=60):
                with open(note, "x"):
                    time.sleep(0.005)
                note.unlink()
    """
    folder, note = tmp_path / "folder", tmp_path / "note"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder), str(note)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said


def test_leftovers_are_removed_from_every_sub_folder(tmp_path):
    inside = tmp_path / "outcomes" / "digits"
    inside.mkdir(parents=True)
    for folder in (tmp_path, inside):
        (folder / f"{TEMPORARY}abc").write_text("half")
    (inside / "kept").write_text("whole")
    with sole_use(tmp_path):
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [LOCK, "kept"]


def test_a_new_folder_of_which_nothing_came_does_not_stay(tmp_path):
    with pytest.raises(ValueError, match="nothing"), sole_use(tmp_path / "new" / "run"):
        raise ValueError("nothing")
    assert not (tmp_path / "new" / "run").exists()


@pytest.mark.parametrize("inside", ["augmented", "outcomes/digits/svhn.safetensors"])
def test_a_link_in_the_folder_is_refused(tmp_path, inside):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    link = tmp_path / "run" / inside
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(UserError, match="is a symbolic link"), sole_use(tmp_path / "run"):
        pass
    assert elsewhere.read_text() == "mine"


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    with sole_use(tmp_path / "run"):
        assert (tmp_path / "disk" / LOCK).exists()


def test_a_pipe_in_the_folder_is_refused(tmp_path):
    os.mkfifo(tmp_path / "run.yaml")
    with pytest.raises(UserError, match="is neither a file nor a folder"), sole_use(tmp_path):
        pass


def test_a_lock_that_is_a_link_makes_no_file_elsewhere(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError), sole_use(tmp_path / "run"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_not_opened_through_a_link(tmp_path):
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        open_own(tmp_path / "log", "a")
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_kill_leaves_does_not_count(tmp_path):
    (tmp_path / LOCK).touch()
    (tmp_path / f"{TEMPORARY}abc").touch()
    assert not holds_anything(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert holds_anything(tmp_path)


def test_room_is_taken_before_a_file_is_mapped(tmp_path):
    images = new_map(tmp_path / "images.npy", np.float16, (64, 64, 64))
    assert (tmp_path / "images.npy").stat().st_blocks * 512 >= images.nbytes == 2**19
    images[:] = 1
    images.flush()
    assert np.load(tmp_path / "images.npy").sum(dtype=float) == 2**18
    assert (old_map(tmp_path / "images.npy", np.float16, (64, 64, 64)) == 1).all()


def test_a_full_disk_is_one_line(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        with pytest.raises(UserError, match="a disk with room left"):
            new_map(tmp_path / "images.npy", np.float16, (2**19,))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
