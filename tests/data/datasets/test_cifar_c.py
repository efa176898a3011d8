"""CIFAR-10-C: small files in exactly the official form, read right; what is wrong with them, found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onedomain.data.corruptions import KINDS, SEVERITIES, corrupt
from onedomain.data.datasets import cifar_c
from onedomain.data.datasets.cifar import CIFAR10
from onedomain.data.datasets.cifar_c import CIFAR10_C, CIFAR10_C_LITE, GROWING, NEARER, Corrupted, out_of_order
from onedomain.data.datasets.regenerate import MADE, file_name
from onedomain.errors import UserError

EVERY = (CIFAR10, CIFAR10_C, CIFAR10_C_LITE)
first_four = replace(CIFAR10_C_LITE, images=4)
COUNT = 10
LABELS = np.array([3, 8, 8, 0, 6, 6, 1, 6, 3, 1])  # of the first ten test images


@pytest.fixture
def official(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the official files of one corruption, as if CIFAR-10 had ten test images."""
    monkeypatch.setitem(CIFAR10.counts, "test", COUNT)
    folder = tmp_path / "cifar10" / "CIFAR-10-C"
    folder.mkdir(parents=True)
    write(folder, "fog")
    return tmp_path


def write(folder: Path, kind: str, labels: np.ndarray | None = None) -> None:
    """Every pixel tells its severity and its image: 40·severity + image."""
    values = (40 * np.repeat(SEVERITIES, COUNT) + np.tile(np.arange(COUNT), 5)).astype(np.uint8)
    np.save(folder / file_name(kind), np.broadcast_to(values[:, None, None, None], (50, 32, 32, 3)))
    np.save(folder / "labels.npy", (np.tile(LABELS, 5) if labels is None else labels).astype(np.uint8))


def clean(folder: Path, labels: np.ndarray = LABELS) -> None:
    images = np.zeros((len(labels), 32, 32, 3), np.uint8)
    np.savez(folder / "cifar10" / "cifar10.npz", x_test=images, y_test=labels)


def test_severities_are_blocks_of_rows(official: Path) -> None:
    clean(official)
    for severity in SEVERITIES:
        domain = CIFAR10_C.load(f"fog-{severity}", official)
        assert (domain.name, domain.split, domain.note) == (f"fog-{severity}", "test", "")
        assert domain.subset([0]).corruption == ("fog", severity)
        np.testing.assert_array_equal(domain.images[:, 5, 5, 2], 40 * severity + np.arange(COUNT))
        np.testing.assert_array_equal(domain.labels, LABELS)


def test_images_are_read_from_the_disk_as_they_are_needed(official: Path) -> None:
    domain = CIFAR10_C.load("fog-2", official)
    assert isinstance(domain.images, np.memmap)
    np.testing.assert_allclose(domain.batch([3, 0]).images[:, 0, 0, 0] * 255, [83, 80])
    assert domain.fingerprint != CIFAR10_C.load("fog-3", official).fingerprint


def test_a_part_of_the_images(official: Path) -> None:
    domain = first_four.load("fog-5", official)
    np.testing.assert_array_equal(domain.images[:, 0, 0, 0], [200, 201, 202, 203])
    np.testing.assert_array_equal(domain.labels, LABELS[:4])
    assert domain.note == ""


def test_all_targets_by_name() -> None:
    assert len(CIFAR10_C.parts) == 95
    assert list(CIFAR10_C.parts)[:6] == ["fog-1", "fog-2", "fog-3", "fog-4", "fog-5", "snow-1"]


def test_regenerated_files_say_so_and_come_second(official: Path) -> None:
    made = official / cifar_c.REGENERATED
    made.mkdir()
    for kind in ("fog", "snow"):
        write(made, kind)
    (made / MADE).write_text(json.dumps({"images": COUNT}))
    assert CIFAR10_C.load("fog-1", official).note == ""
    assert CIFAR10_C.load("snow-1", official).note == "regenerated"
    (made / MADE).write_text("{")
    with pytest.raises(UserError, match="regenerated.json: cannot be read"):
        CIFAR10_C.load("snow-1", official)


def test_a_missing_corruption_is_told_with_the_command(official: Path) -> None:
    with pytest.raises(UserError, match=r"domain 'frost': not found in .*: frost\.npy .* prepare cifar10-c$"):
        CIFAR10_C.load("frost-1", official)
    (official / "cifar10" / "CIFAR-10-C" / "labels.npy").unlink()
    with pytest.raises(
        UserError, match=r"domain 'fog': not found .*: fog\.npy and labels\.npy .*prepare cifar10-c-lite$"
    ):
        first_four.load("fog-1", official)


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((50, 32, 32, 3), np.float32), "holds float32 of shape (50, 32, 32, 3)"),
        (np.zeros((40, 32, 32, 3), np.uint8), "uint8 of shape (40, 32, 32, 3)"),
        (np.zeros((50, 3, 32, 32), np.uint8), "allowed: uint8 of shape (50, 32, 32, 3), 10 images per severity"),
        (np.array([{}]), "cannot be read"),
    ],
)
def test_other_shapes_and_types_are_refused(array: np.ndarray, found: str, official: Path) -> None:
    np.save(official / "cifar10" / "CIFAR-10-C" / "fog.npy", array)
    with pytest.raises(UserError) as caught:
        CIFAR10_C.load("fog-1", official)
    assert found in str(caught.value)
    assert "fog.npy: " in str(caught.value)


def test_a_cut_file_is_refused(official: Path) -> None:
    path = official / "cifar10" / "CIFAR-10-C" / "fog.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"fog\.npy: cannot be read"):
        CIFAR10_C.load("fog-1", official)


def test_labels_that_were_mixed_up_are_found(official: Path) -> None:
    folder = official / "cifar10" / "CIFAR-10-C"
    shuffled = np.tile(LABELS, 5)
    shuffled[30:40] = LABELS[::-1]
    write(folder, "fog", shuffled)
    with pytest.raises(UserError, match=r"labels of severity 4 are not those of severity 1 \(first at image 0\)"):
        CIFAR10_C.load("fog-1", official)
    other = LABELS.copy()
    other[7] = 9
    write(folder, "fog", np.tile(other, 5))
    CIFAR10_C.load("fog-1", official)  # nothing to compare with
    clean(official)
    with pytest.raises(UserError, match="image 7 has label 9, and in the test images of CIFAR-10 label 6"):
        CIFAR10_C.load("fog-1", official)
    clean(official, LABELS[:5])  # as far as they are there
    CIFAR10_C.load("fog-1", official)


@pytest.mark.parametrize("labels", [np.zeros(40), np.zeros((50, 1)), np.zeros(50, np.float32)])
def test_labels_of_another_shape_or_type_are_refused(labels: np.ndarray, official: Path) -> None:
    np.save(official / "cifar10" / "CIFAR-10-C" / "labels.npy", labels)
    with pytest.raises(UserError, match=r"labels\.npy: holds float.* allowed: whole numbers of shape \(50,\)"):
        CIFAR10_C.load("fog-1", official)


@pytest.fixture(scope="module")
def corrupted(photographs: np.ndarray, overlays: Path) -> dict[str, np.ndarray]:
    kinds = [kind for kind in KINDS if kind != "zoom-blur"]  # the slowest, and like the other blurs here
    return {kind: np.stack([corrupt(photographs, kind, s, overlays=overlays) for s in SEVERITIES]) for kind in kinds}


def test_mixed_up_images_and_severities_are_found(
    corrupted: dict[str, np.ndarray], photographs: np.ndarray, tmp_path: Path
) -> None:
    found = Corrupted((tmp_path,), len(photographs), regenerated=True)

    def told(kind: str, blocks: np.ndarray) -> str | None:
        np.save(tmp_path / file_name(kind), blocks.reshape(-1, 32, 32, 3))
        return out_of_order(found, kind, photographs)

    for kind, blocks in corrupted.items():
        assert told(kind, blocks) is None
        for near, far in NEARER.get(kind, GROWING):
            swapped = blocks.copy()
            swapped[[near - 1, far - 1]] = swapped[[far - 1, near - 1]]
            line = told(kind, swapped)
            assert line is not None
            assert "severities mixed up?" in line
        shuffled = blocks.copy()
        shuffled[2] = np.roll(shuffled[2], 5, axis=0)
        line = told(kind, shuffled)
        assert line is not None
        assert "severity 3 does not hold the test images in their order" in line


def test_check_reads_all_of_it(corrupted: dict[str, np.ndarray], photographs: np.ndarray, tmp_path: Path) -> None:
    folder = tmp_path / cifar_c.REGENERATED
    folder.mkdir(parents=True)
    np.savez(tmp_path / "cifar10" / "cifar10.npz", x_test=photographs, y_test=np.arange(len(photographs)) % 10)
    np.save(folder / "labels.npy", np.tile(np.arange(len(photographs)) % 10, 5).astype(np.uint8))
    (folder / MADE).write_text(json.dumps({"images": len(photographs)}))
    for kind, blocks in corrupted.items():
        np.save(folder / file_name(kind), blocks.reshape(-1, 32, 32, 3))
    rows = {each.name: each.check(tmp_path) for each in EVERY}
    assert rows["cifar10"].state == "partial"
    assert rows["cifar10-c"].state == "partial"
    assert rows["cifar10-c"].where == f"{folder} (regenerated)"
    assert rows["cifar10-c"].problems == ["missing: zoom-blur", f"{len(photographs)} of 10,000 test images"]
    np.save(folder / "fog.npy", corrupted["fog"][::-1].reshape(-1, 32, 32, 3))
    row = CIFAR10_C.check(tmp_path)
    assert row.state == "broken"
    assert row.problems[0].startswith("fog.npy: severity 2 is nearer to the clean images than severity 1")
    np.save(folder / "labels.npy", np.arange(5 * len(photographs)) % 9)
    row = CIFAR10_C.check(tmp_path)
    assert "labels of severity 2 are not those of severity 1" in row.problems[0]
    listed = {each.name: each.list(tmp_path).state for each in EVERY}
    assert (listed["cifar10"], listed["cifar10-c"], listed["cifar10-c-lite"]) == ("present",) * 3
