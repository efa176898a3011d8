"""Links that are made while a folder is written to, after it was looked through."""

from __future__ import annotations

import os

import numpy as np
import pytest

from onedomain.data.arrays import save_arrays
from onedomain.data.files import TEMPORARY, make_folder, open_own, write_atomically
from onedomain.data.folders import sole_use, tidied
from onedomain.data.mapped import new_map, old_map
from onedomain.data.within import beneath
from onedomain.errors import UserError

WRITERS = {
    "a file": lambda path: write_atomically(path, "ours"),
    "a folder": lambda path: make_folder(path),
    "arrays": lambda path: save_arrays(path, {}, {"a": np.zeros(3)}),
    "a map": lambda path: new_map(path, np.float16, (3,)),
    "a log": lambda path: open_own(path, "a").close(),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("below", ["inner", "inner/deeper"])
def test_a_folder_that_becomes_a_link_is_not_followed(tmp_path, write, below):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    (elsewhere / "deeper").mkdir(parents=True)
    (run / "inner").mkdir(parents=True)
    with sole_use(run):
        (run / "inner").rmdir()
        (run / "inner").symlink_to(elsewhere)
        with pytest.raises((UserError, OSError)):
            write(run / below / "file")
    assert [path.name for path in elsewhere.rglob("*")] == ["deeper"]


@pytest.mark.parametrize("write", ["a file", "arrays", "a map"])
def test_a_file_that_becomes_a_link_is_replaced(tmp_path, write):
    (tmp_path / "mine").write_text("mine")
    with sole_use(tmp_path / "run"):
        (tmp_path / "run" / "file").symlink_to(tmp_path / "mine")
        WRITERS[write](tmp_path / "run" / "file")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "run" / "file").is_symlink()


def test_what_has_a_second_name_is_not_written_to(tmp_path):
    new_map(tmp_path / "map", np.float16, (3,))[:] = 1
    (tmp_path / "log").write_text("mine\n")
    for name in ("map", "log"):
        os.link(tmp_path / name, tmp_path / f"{name} elsewhere")
    with pytest.raises(UserError, match="second name"):
        old_map(tmp_path / "map", np.float16, (3,))
    with pytest.raises(OSError, match="second name"):
        open_own(tmp_path / "log", "a")


def test_results_in_a_run_folder_do_not_leave_it_by_a_link(tmp_path):
    """`figures --out RUN/figures`, where RUN is a stranger's."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.yaml").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "figures").symlink_to(tmp_path / "elsewhere")
    for use in (tidied, sole_use):
        with pytest.raises(UserError, match="no links"), use(tmp_path / "run" / "figures"):
            write_atomically(tmp_path / "run" / "figures" / "a.svg", "ours")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_of_ones_own_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "figures").symlink_to(tmp_path / "disk")
    with tidied(tmp_path / "figures"):
        write_atomically(tmp_path / "figures" / "a.svg", "ours")
    assert (tmp_path / "disk" / "a.svg").read_text() == "ours"


def test_only_the_inside_of_a_folder_is_held(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with beneath(tmp_path / "run"):
        write_atomically(tmp_path / "link" / "a", "ours")
    assert (tmp_path / "disk" / "a").exists()


def test_a_file_that_is_being_written_is_no_leftover(tmp_path):
    import fcntl

    for name in ("left", "written"):
        (tmp_path / f"{TEMPORARY}{name}").touch()
    with (tmp_path / f"{TEMPORARY}written").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with tidied(tmp_path):
            assert [path.name for path in tmp_path.iterdir()] == [f"{TEMPORARY}written"]
    with tidied(tmp_path):
        assert not list(tmp_path.iterdir())


def test_what_is_written_is_locked_until_it_has_its_name(tmp_path, monkeypatch):
    """Another call that tidies the folder in the meantime takes nothing away."""
    rename = os.rename

    def later(*given, **folders):
        with tidied(tmp_path):
            pass
        rename(*given, **folders)

    monkeypatch.setattr(os, "rename", later)
    write_atomically(tmp_path / "a", "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_map_of_another_shape_or_length_is_refused(tmp_path):
    path = tmp_path / "map.npy"
    new_map(path, np.float16, (3, 4))
    with pytest.raises(UserError, match="float16 of shape"):
        old_map(path, np.float16, (4, 3))
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match="cut or lengthened"):
        old_map(path, np.float16, (3, 4))
    path.write_bytes(b"no array")
    with pytest.raises(UserError, match="cannot be read"):
        old_map(path, np.float16, (3, 4))


@pytest.mark.parametrize("header", [b"(" * 3000, b"{'descr'", b"\0\n", b"9**9\n"])
def test_a_map_with_a_header_that_is_none_is_one_line(header, tmp_path):
    path = tmp_path / "map.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(UserError, match=r"map.npy: cannot be read \(.*\); allowed: the file that this run wrote"):
        old_map(path, np.float16, (1, 8, 8, 1))
