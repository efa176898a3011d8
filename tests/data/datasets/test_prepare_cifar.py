"""`onedomain data prepare cifar10`; the corrupted sets are in tests/data/corruptions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onedomain.data.datasets import cifar, prepare
from onedomain.data.datasets.cifar_files import BINARY, PYTHON
from onedomain.errors import UserError
from tests.data.datasets.test_cifar_files import TEST, TRAIN, put


def test_cifar10_is_converted_from_an_archive_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = put(BINARY, tmp_path / "cifar10", packed=True)
    with pytest.raises(UserError, match="its SHA-256 is .* as published"):  # not the real one
        prepare.prepare("cifar10", tmp_path)
    assert not (tmp_path / cifar.PREPARED).exists()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    entry = replace(prepare.CATALOGUE["cifar10"], sha256={archive.name: digest})
    monkeypatch.setattr(prepare, "CATALOGUE", {**prepare.CATALOGUE, "cifar10": entry})
    assert prepare.prepare("cifar10", tmp_path).endswith("cifar10.npz (20 train, 4 test)")
    archive.unlink()
    np.testing.assert_array_equal(cifar.read("train", tmp_path)[0], TRAIN)
    np.testing.assert_array_equal(cifar.read("test", tmp_path)[0], TEST)
    assert prepare.prepare("cifar10", tmp_path) == f"cifar10: already prepared, {tmp_path / cifar.PREPARED}"
    assert prepare.check_data(tmp_path, ["cifar10"])[0].state == "broken"  # no image of six classes in the test split


def test_cifar10_is_converted_from_unpacked_files(tmp_path: Path) -> None:
    put(PYTHON, tmp_path, packed=False)
    assert prepare.prepare("cifar10", tmp_path).endswith("cifar10.npz (20 train, 4 test)")
    np.testing.assert_array_equal(cifar.read("test", tmp_path)[0], TEST)


def test_without_a_network_it_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(prepare.CATALOGUE["cifar10"], addresses=("http://127.0.0.1:9/",))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(prepare, "CATALOGUE", {**prepare.CATALOGUE, "cifar10": entry})
    with pytest.raises(UserError, match="put it at .*cifar-10-binary.tar.gz yourself"):
        prepare.prepare("cifar10", tmp_path)


def test_a_broken_archive_is_told_by_check(tmp_path: Path) -> None:
    archive = put(PYTHON, tmp_path, packed=True)
    archive.write_bytes(b"damaged")
    [row] = prepare.check_data(tmp_path, ["cifar10"])
    assert (row.state, row.counts) == ("broken", {})
    assert "its SHA-256 is" in row.problems[0]
