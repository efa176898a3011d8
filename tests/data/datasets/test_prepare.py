"""Listing, checking, fetching and converting; downloads come from a server on this machine."""

from __future__ import annotations

import bz2
import errno
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from onedomain.data.datasets.base import MissingData, Row
from onedomain.data.datasets.catalogue import CATALOGUE, find_dataset
from onedomain.data.datasets.digits import DIGITS, SVHN, USPS
from onedomain.data.datasets.labelled import Labelled
from onedomain.errors import UserError

LABELS = np.arange(20) % 10
COLOUR = np.random.default_rng(1).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)


def usps_file(labels: np.ndarray) -> bytes:
    lines = (f"{label + 1} " + " ".join(f"{i}:{i / 128 - 1:g}" for i in range(1, 257)) for label in labels)
    return bz2.compress("\n".join(lines).encode())


def write_syn(folder: Path) -> Path:
    path = folder / "digits" / "syn" / "synth_test_32x32.mat"
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": LABELS})
    return path


def quiet(_text: str, _fraction: float) -> None:
    pass


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """USPS, published by a server on this machine; the folder that it serves."""
    folder = tmp_path / "published"
    folder.mkdir()
    files = {"usps.bz2": usps_file(LABELS), "usps.t.bz2": usps_file(LABELS[:15])}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    entry = replace(
        USPS,
        addresses=(f"http://127.0.0.1:{server.server_port}/", f"http://127.0.0.1:{server.server_port}/mirror/"),
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    )
    monkeypatch.setitem(CATALOGUE, "usps", entry)
    yield folder
    server.shutdown()
    server.server_close()


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def one_line(error: UserError) -> str:
    assert "\n" not in str(error)
    assert error.exit_code == 2
    return str(error)


def row(rows: list[Row], name: str) -> Row:
    return next(row for row in rows if row.name == name)


@pytest.mark.parametrize("digits", DIGITS, ids=lambda digits: digits.name)
def test_what_can_be_downloaded_has_a_checksum(digits: Labelled) -> None:
    assert bool(digits.addresses) == bool(digits.sha256) == ("data prepare" in digits.get)
    assert all(len(digest) == 64 and int(digest, 16) for digest in digits.sha256.values())
    assert set(digits.sha256) <= {file for forms in digits.forms.values() for form in forms for file in form.files}


def test_usps_is_downloaded_and_converted(published: Path, tmp_path: Path) -> None:
    data, told = tmp_path / "data", []
    line = CATALOGUE["usps"].prepare(data, lambda text, fraction: told.append((text, fraction)))
    assert line == f"usps: prepared, {data / 'digits' / 'usps.npz'} (20 train, 15 test)"
    assert files_in(data / "digits") == {"usps.npz", "usps.npz.sha256", "raw/usps.bz2", "raw/usps.t.bz2"}
    domain = CATALOGUE["usps"].load("test", data)
    assert domain.labels.tolist() == LABELS[:15].tolist()
    assert {text.split()[0] for text, _ in told} == {"downloading", "reading", "writing"}
    assert all(0 <= fraction <= 1 for _, fraction in told)
    assert CATALOGUE["usps"].check(data).counts == {"train": 20, "test": 15}
    digest = hashlib.sha256((data / "digits" / "usps.npz").read_bytes()).hexdigest()
    assert (data / "digits" / "usps.npz.sha256").read_text() == f"{digest}  usps.npz\n"


def test_what_is_prepared_is_left_alone(published: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    CATALOGUE["usps"].prepare(data, quiet)
    before = (data / "digits" / "usps.npz").stat().st_mtime_ns
    assert CATALOGUE["usps"].prepare(data, quiet) == f"usps: already prepared, {data / 'digits' / 'usps.npz'}"
    assert (data / "digits" / "usps.npz").stat().st_mtime_ns == before


def test_files_that_lie_there_are_not_downloaded(published: Path, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "digits" / "raw"
    raw.mkdir(parents=True)
    for name in ("usps.bz2", "usps.t.bz2"):
        (published / name).rename(raw / name)
    assert "(20 train, 15 test)" in CATALOGUE["usps"].prepare(tmp_path / "data", quiet)


def test_a_mirror_is_tried(published: Path, tmp_path: Path) -> None:
    (published / "mirror").mkdir()
    for name in ("usps.bz2", "usps.t.bz2"):
        (published / name).rename(published / "mirror" / name)
    assert "(20 train, 15 test)" in CATALOGUE["usps"].prepare(tmp_path / "data", quiet)


def test_a_download_with_another_checksum_is_refused(published: Path, tmp_path: Path) -> None:
    (published / "usps.t.bz2").write_bytes(usps_file(LABELS[:12]))
    with pytest.raises(UserError) as caught:
        CATALOGUE["usps"].prepare(tmp_path / "data", quiet)
    line = one_line(caught.value)
    assert line.startswith("usps.t.bz2: cannot be downloaded from http://127.0.0.1:")
    assert "has not the published SHA-256" in line
    assert "mirror/usps.t.bz2 (HTTP 404)" in line
    assert f"put it at {tmp_path / 'data' / 'digits' / 'raw' / 'usps.t.bz2'} yourself" in line
    assert files_in(tmp_path / "data") == {"digits/raw/usps.bz2"}


def test_no_network_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(SVHN, addresses=("http://127.0.0.1:9/",))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(CATALOGUE, "svhn", entry)
    with pytest.raises(UserError) as caught:
        CATALOGUE["svhn"].prepare(tmp_path / "data", quiet)
    target = tmp_path / "data" / "digits" / "raw" / "train_32x32.mat"
    assert one_line(caught.value) == (
        "train_32x32.mat: cannot be downloaded from http://127.0.0.1:9/train_32x32.mat (no connection); "
        f"put it at {target} yourself, then run: onedomain data prepare svhn"
    )
    assert files_in(tmp_path) == set()


def test_a_local_file_with_another_checksum_is_refused(published: Path, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "digits" / "raw"
    raw.mkdir(parents=True)
    (raw / "usps.bz2").write_bytes(usps_file(LABELS[:10]))
    with pytest.raises(UserError) as caught:
        CATALOGUE["usps"].prepare(tmp_path / "data", quiet)
    assert "its SHA-256 is" in one_line(caught.value)
    assert str(raw / "usps.bz2") in str(caught.value)
    assert files_in(tmp_path / "data") == {"digits/raw/usps.bz2"}


def test_syn_is_converted_from_a_file_put_there(tmp_path: Path) -> None:
    write_syn(tmp_path)
    assert CATALOGUE["syn"].prepare(tmp_path, quiet).endswith("syn.npz (20 test)")
    np.testing.assert_array_equal(CATALOGUE["syn"].load("test", tmp_path).images, COLOUR)
    with np.load(tmp_path / "digits" / "syn.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["x_test", "y_test"]
        assert (archive["x_test"].dtype, archive["y_test"].dtype) == (np.uint8, np.int64)


def test_what_has_no_address_is_told_where_to_put(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"put synth_test_32x32\.mat .* into digits/syn/"):
        CATALOGUE["syn"].prepare(tmp_path, quiet)
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize("failing", ["os.fsync", "os.rename"])
def test_a_full_disk_leaves_nothing_half_written(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_syn(tmp_path)
    before = files_in(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(failing, full)
    with pytest.raises(UserError, match="cannot be written"):
        CATALOGUE["syn"].prepare(tmp_path, quiet)
    assert files_in(tmp_path) == before


def test_a_damaged_file_is_refused_and_nothing_written(tmp_path: Path) -> None:
    path = write_syn(tmp_path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"synth_test_32x32\.mat: cannot be read"):
        CATALOGUE["syn"].prepare(tmp_path, quiet)
    assert files_in(tmp_path) == {"digits/syn/synth_test_32x32.mat"}


def test_an_unknown_name() -> None:
    with pytest.raises(UserError, match="data: 'svnh' is not known, did you mean 'svhn'"):
        find_dataset("svnh")


def test_list_says_what_is_there(tmp_path: Path) -> None:
    path = write_syn(tmp_path)
    (tmp_path / "digits" / "svhn.npz").write_bytes(b"damaged")
    np.savez(tmp_path / "digits" / "mnist_m.npz", x_test=COLOUR, y_test=LABELS)
    rows = [dataset.list(tmp_path) for dataset in CATALOGUE.values()]
    assert [row.name for row in rows[:5]] == ["mnist", "mnist-m", "svhn", "syn", "usps"]
    assert [row.state for row in rows[:5]] == ["missing", "present", "broken", "present", "missing"]
    assert {row.state for row in rows[5:]} == {"missing"}
    assert row(rows, "mnist-m").counts == {"test": 20}
    assert row(rows, "syn").where == str(path)
    assert row(rows, "usps").where == "run: onedomain data prepare usps"
    assert [row.state == "present" for row in rows[:5]] == [False, True, False, True, False]


def test_check_finds_what_is_not_whole(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    write_syn(tmp_path)
    np.savez(folder / "usps.npz", x_test=np.resize(COLOUR, (2007, 16, 16)), y_test=np.resize(LABELS, 2007))
    np.savez(folder / "svhn.npz", x_test=COLOUR, y_test=LABELS % 9)
    np.savez(folder / "mnist_m.npz", x_test=COLOUR, y_test=LABELS + 1)
    rows = [dataset.check(tmp_path) for dataset in CATALOGUE.values()]
    states = {row.name: row.state for row in rows}
    assert {name: states.pop(name) for name in ("mnist-m", "svhn", "syn", "usps")} == {
        "mnist-m": "broken",
        "svhn": "broken",
        "syn": "partial",
        "usps": "whole",
    }
    assert set(states.values()) == {"missing"}
    assert row(rows, "syn").problems == ["train: 0 of 479,400 images", "test: 20 of 9,553 images"]
    assert row(rows, "usps").problems == ["train: 0 of 7,291 images"]
    assert row(rows, "svhn").problems[0] == "test: no image of digit 9"
    assert row(rows, "mnist-m").problems[0].endswith("label 10 found; allowed: 0 to 9")


def test_check_compares_the_checksum_of_a_prepared_file(tmp_path: Path) -> None:
    write_syn(tmp_path)
    CATALOGUE["syn"].prepare(tmp_path, quiet)
    assert CATALOGUE["syn"].check(tmp_path).state == "partial"
    np.savez(tmp_path / "digits" / "syn.npz", x_test=COLOUR[::-1], y_test=LABELS)
    changed = CATALOGUE["syn"].check(tmp_path)
    assert changed.state == "broken"
    assert "its SHA-256 is" in changed.problems[0]
    assert "in syn.npz.sha256; delete it and run: onedomain data prepare syn" in changed.problems[0]


def test_check_compares_the_checksum_of_a_published_file(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    savemat(tmp_path / "digits" / "test_32x32.mat", {"X": COLOUR.transpose(1, 2, 3, 0), "y": LABELS + 1})
    checked = CATALOGUE["svhn"].check(tmp_path)
    assert checked.state == "broken"
    assert f"not '{SVHN.sha256['test_32x32.mat']}' as published" in checked.problems[0]
