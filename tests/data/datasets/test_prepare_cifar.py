"""`onedomain data prepare cifar10`; the corrupted sets are in tests/data/corruptions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onedomain.data.datasets.catalogue import CATALOGUE
from onedomain.data.datasets.cifar import BINARY, CIFAR10, PYTHON
from onedomain.errors import UserError
from tests.data.datasets.test_cifar import TEST, TRAIN, put
from tests.data.datasets.test_prepare import quiet


def test_cifar10_is_converted_from_an_archive_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = put(BINARY, tmp_path / "cifar10", packed=True)
    with pytest.raises(UserError, match="its SHA-256 is .* as published"):  # not the real one
        CATALOGUE["cifar10"].prepare(tmp_path, quiet)
    assert not (tmp_path / CIFAR10.home).exists()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    entry = replace(CIFAR10, sha256={archive.name: digest})
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    assert CATALOGUE["cifar10"].prepare(tmp_path, quiet).endswith("cifar10.npz (20 train, 4 test)")
    archive.unlink()
    np.testing.assert_array_equal(CIFAR10.read("train", tmp_path)[0], TRAIN)
    np.testing.assert_array_equal(CIFAR10.read("test", tmp_path)[0], TEST)
    assert CATALOGUE["cifar10"].prepare(tmp_path, quiet) == f"cifar10: already prepared, {tmp_path / CIFAR10.home}"
    assert CATALOGUE["cifar10"].check(tmp_path).state == "broken"  # no image of six classes in the test split


def test_cifar10_is_converted_from_unpacked_files(tmp_path: Path) -> None:
    put(PYTHON, tmp_path, packed=False)
    assert CATALOGUE["cifar10"].prepare(tmp_path, quiet).endswith("cifar10.npz (20 train, 4 test)")
    np.testing.assert_array_equal(CIFAR10.read("test", tmp_path)[0], TEST)


def test_without_a_network_it_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(CIFAR10, addresses=("http://127.0.0.1:9/",))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    with pytest.raises(UserError, match="put it at .*cifar-10-binary.tar.gz yourself"):
        CATALOGUE["cifar10"].prepare(tmp_path, quiet)


def test_a_broken_archive_is_told_by_check(tmp_path: Path) -> None:
    archive = put(PYTHON, tmp_path, packed=True)
    archive.write_bytes(b"damaged")
    row = CATALOGUE["cifar10"].check(tmp_path)
    assert (row.state, row.counts) == ("broken", {})
    assert "its SHA-256 is" in row.problems[0]
