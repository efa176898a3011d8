"""The set made anew: in the official form, the same however often it is killed, and never called official."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from onedomain.data import corruptions, processes
from onedomain.data.corruptions import KINDS, SEVERITIES, corrupt
from onedomain.data.datasets import cifar_c, regenerate
from onedomain.data.datasets.cifar_c import CIFAR10_C, CIFAR10_C_LITE
from onedomain.errors import UserError

QUICK = ("fog", "gaussian-noise", "contrast")


@pytest.fixture
def data(tmp_path: Path, photographs: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with seven test images; three corruptions stand for all."""
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10" / "cifar10.npz", x_test=photographs[:7], y_test=np.arange(7))
    monkeypatch.setattr(processes, "cores", lambda: 1)  # starting processes takes seconds
    monkeypatch.setattr(regenerate, "BLOCK", 3)
    monkeypatch.setattr(corruptions, "KINDS", QUICK)
    return tmp_path


def make(data: Path, name: str = "a", stop_after: int | None = None) -> Path:
    told = []

    def tell(text: str, fraction: float) -> None:
        told.append((text, fraction))
        if len(told) == stop_after:
            raise KeyboardInterrupt

    folder = data / name
    regenerate.regenerate(folder, data, None, tell)
    if told:
        assert told[-1][1] == 1.0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_files_in_the_official_form(data: Path, photographs: np.ndarray) -> None:
    folder = make(data)
    assert set(contents(folder)) == {"fog.npy", "gaussian_noise.npy", "contrast.npy", "labels.npy", "regenerated.json"}
    pixels = np.load(folder / "fog.npy", mmap_mode="r", allow_pickle=False)
    assert (pixels.dtype, pixels.shape) == (np.uint8, (35, 32, 32, 3))
    for severity in SEVERITIES:
        expected = corrupt(photographs[:7], "fog", severity, constants="cifar10-c")
        np.testing.assert_array_equal(pixels[7 * (severity - 1) : 7 * severity], expected)
    np.testing.assert_array_equal(np.load(folder / "labels.npy"), np.tile(np.arange(7), 5))
    assert "not the official files" in json.loads((folder / "regenerated.json").read_text())["what"]


@pytest.mark.parametrize("stop_after", [1, 5, 7, 14])
def test_killed_and_started_again_it_goes_on(stop_after: int, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = contents(make(data, "whole"))
    with pytest.raises(KeyboardInterrupt):
        make(data, "killed", stop_after=stop_after)
    for name, content in contents(data / "killed").items():
        assert not name.endswith(".npy") or content == whole[name]  # what has its name is whole
    calls = []
    monkeypatch.setattr(regenerate, "corrupt", lambda *given, **named: calls.append(given) or corrupt(*given, **named))
    assert contents(make(data, "killed")) == whole
    assert len(calls) == 3 * (15 - stop_after)  # 3 corruptions × 5 severities, each in 3 blocks


def test_a_damaged_part_is_made_again(data: Path) -> None:
    whole = contents(make(data, "whole"))
    with pytest.raises(KeyboardInterrupt):
        make(data, "killed", stop_after=3)
    part = data / "killed" / "fog-2.part"
    part.write_bytes(part.read_bytes()[:1000])
    assert contents(make(data, "killed")) == whole


def test_as_many_processes_as_you_like(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = contents(make(data, "one"))
    monkeypatch.setattr(processes, "cores", lambda: 2)
    assert contents(make(data, "two")) == alone


def test_other_images_are_not_mixed_in(data: Path, photographs: np.ndarray) -> None:
    folder = make(data)
    np.savez(data / "cifar10" / "cifar10.npz", x_test=photographs[1:8], y_test=np.arange(7))
    with pytest.raises(UserError, match="was begun with other test images; allowed: remove the folder"):
        make(data)
    (folder / "regenerated.json").write_text("damaged")
    with pytest.raises(UserError, match="was begun with other what"):
        make(data)


def test_a_full_disk_is_told_in_one_line(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(KeyboardInterrupt):
        make(data, stop_after=2)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="cannot be written"):
        make(data)


def test_prepare_makes_the_lite_set_and_names_what_is_missing(data: Path) -> None:
    line = CIFAR10_C_LITE.prepare(data, lambda _text, _fraction: None)
    assert line.startswith(f"cifar10-c-lite: regenerated, {data / cifar_c.REGENERATED_LITE} (")
    assert "left out: frost: frost1.png" in line
    assert "of 7 test images" in line
    row = CIFAR10_C_LITE.check(data)
    assert row.state == "partial"
    assert row.problems[0] == f"missing: {', '.join(kind for kind in KINDS if kind not in QUICK)}"
    domain = CIFAR10_C_LITE.load("fog-2", data)
    assert (len(domain), domain.note) == (7, "regenerated, 7 of 1,000 images")
    with pytest.raises(UserError, match="domain 'fog'"):
        CIFAR10_C.load("fog-2", data)  # the lite set is no replacement for the full one


def test_frost_is_made_where_its_overlays_are(data: Path, overlays: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruptions, "KINDS", ("frost",))
    (data / "frost").symlink_to(overlays)
    assert np.load(make(data) / "frost.npy").shape == (35, 32, 32, 3)
