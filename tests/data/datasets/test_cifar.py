"""CIFAR-10 in the forms in which it is published, written here byte by byte."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from onedomain.data.datasets import cifar
from onedomain.data.datasets.cifar import BINARY, CIFAR10, PYTHON, Version, read_binary, read_pickled
from onedomain.errors import UserError

A_BATCH = 4
RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 256, (5 * A_BATCH, 32, 32, 3), dtype=np.uint8)
TEST = RNG.integers(0, 256, (A_BATCH, 32, 32, 3), dtype=np.uint8)
TRAIN_LABELS, TEST_LABELS = np.arange(5 * A_BATCH) % 10, np.array([3, 8, 8, 0])


def planes(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 3, 1, 2).reshape(len(images), 3072)


def pickled(images: np.ndarray, labels: np.ndarray) -> bytes:
    """A batch as Python 2 pickled it, opcode by opcode, in the order of the published files."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def number(value: int) -> bytes:
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    rows = planes(images).tobytes()
    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN"
    dtype += 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R(K\x01"
    array += (
        number(len(images)) + number(3072) + b"\x86" + dtype + b"\x89T" + struct.pack("<I", len(rows)) + rows + b"tb"
    )
    names = b"](" + b"".join(text(f"{place}.png".encode()) for place in range(len(images))) + b"e"
    every_label = b"](" + b"".join(number(int(label)) for label in labels) + b"e"
    return (
        b"\x80\x02}("
        + text(b"batch_label") + text(b"training batch 1 of 5")
        + text(b"labels") + every_label
        + text(b"data") + array
        + text(b"filenames") + names
        + b"u."
    )  # fmt: skip


def binary(images: np.ndarray, labels: np.ndarray) -> bytes:
    return np.concatenate([labels[:, None].astype(np.uint8), planes(images)], axis=1).tobytes()


def files_of(version: Version) -> dict[str, bytes]:
    write = pickled if version is PYTHON else binary
    files = {"readme.html": b"<html>", **({"batches.meta": pickle.dumps({})} if version is PYTHON else {})}
    for place, name in enumerate(version.splits["train"]):
        part = slice(place * A_BATCH, (place + 1) * A_BATCH)
        files[name] = write(TRAIN[part], TRAIN_LABELS[part])
    return {**files, version.splits["test"][0]: write(TEST, TEST_LABELS)}


def put(version: Version, folder: Path, packed: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not packed:
        (folder / version.folder).mkdir()
        for name, content in files_of(version).items():
            (folder / version.folder / name).write_bytes(content)
        return folder / version.folder
    with tarfile.open(folder / version.archive, "w:gz") as archive:
        for name, content in files_of(version).items():
            member = tarfile.TarInfo(f"{version.folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return folder / version.archive


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("version", [PYTHON, BINARY], ids=["python", "binary"])
@pytest.mark.parametrize("place", ["cifar10", "cifar10/raw", "."])
def test_the_published_forms(version: Version, packed: bool, place: str, tmp_path: Path) -> None:
    put(version, tmp_path / place, packed)
    for split, images, labels in (("train", TRAIN, TRAIN_LABELS), ("test", TEST, TEST_LABELS)):
        read_images, read_labels = CIFAR10.read(split, tmp_path)
        np.testing.assert_array_equal(read_images, images)
        np.testing.assert_array_equal(read_labels, labels)
        assert (read_images.dtype, read_labels.dtype) == (np.uint8, np.int64)


def test_the_prepared_file_comes_first(tmp_path: Path) -> None:
    put(BINARY, tmp_path / "cifar10", packed=True)
    np.savez(tmp_path / "cifar10" / "cifar10.npz", x_test=TEST[:2], y_test=TEST_LABELS[:2])
    assert len(CIFAR10.read("test", tmp_path)[0]) == 2
    assert len(CIFAR10.read("train", tmp_path)[0]) == len(TRAIN)  # which that file has not


def test_a_domain_says_how_much_of_it_is_there(tmp_path: Path) -> None:
    put(BINARY, tmp_path, packed=False)
    source = cifar.source(tmp_path)
    assert (source.name, source.split, source.note) == ("cifar10", "train", "20 of 50,000 images")
    assert source.classes[:2] == ("airplane", "automobile")
    assert cifar.lite_source(tmp_path).note == "20 of 6,000 images"
    assert cifar.lite_held_out(tmp_path).note == "4 of 1,000 images"
    with pytest.raises(UserError, match="has 4 images; allowed: more than the first 3,000"):
        cifar.lite_calibration(tmp_path)


def test_what_is_missing_is_told_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cifar-10-python.tar.gz .* run: onedomain data prepare cifar10"):
        cifar.source(tmp_path)


class Attack:
    """What a pickle does when it is loaded as usual."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("attacked",)


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (pickle.dumps([Attack()], 2), "mkdir, which is never loaded"),
        (pickle.dumps({b"data": Attack(), b"labels": [1]}, 4), "mkdir, which is never loaded"),
        (b"c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval, which is never loaded"),
        (b"cnumpy\nload\n(S'x'\ntR.", "numpy.load, which is never loaded"),
        (pickle.dumps({b"data": np.array([object()]), b"labels": [1]}, 2), "which is never loaded"),
        (pickled(TEST, TEST_LABELS).replace(b"U\x02u1", b"U\x02f4"), "an array of something else than bytes"),
        (pickled(TEST, TEST_LABELS).replace(b"U\x02u1", b"U\x02O8"), "an array of something else than bytes"),
        (pickled(TEST, TEST_LABELS)[:-500], "cannot be read"),
        (b"", "cannot be read"),
        (pickle.dumps([1]), "has not both data and labels"),
        (pickle.dumps({b"data": [1], b"labels": [1]}), "data is no array of bytes"),
        (pickled(TEST, TEST_LABELS[:3]), "3 labels for 4 images"),
        (pickled(TEST, np.array([1, 2, 3, 10])), "label 10 found; allowed: 0 to 9"),
        (pickled(TEST, TEST_LABELS).replace(b"M\x00\x0c\x86", b"M\x01\x0c\x86"), "something else than bytes"),
    ],
)
def test_a_pickle_may_hold_a_batch_and_nothing_else(
    content: bytes, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=refused) as caught:
        read_pickled("data_batch_1", content)
    assert str(caught.value).startswith("data_batch_1: ")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_binary_file_is_named() -> None:
    for content in (b"", binary(TEST, TEST_LABELS)[:-1]):
        with pytest.raises(UserError, match=f"test_batch.bin: {len(content):,} bytes found"):
            read_binary("test_batch.bin", content)
    with pytest.raises(UserError, match="label 11 found"):
        read_binary("test_batch.bin", binary(TEST, TEST_LABELS + 3))


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = put(BINARY, tmp_path, packed=True)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(UserError, match="cifar-10-binary.tar.gz: cannot be read"):
        CIFAR10.read("test", tmp_path)
    with tarfile.open(path, "w:gz"):
        pass
    with pytest.raises(UserError, match="cifar-10-batches-bin/test_batch.bin is missing"):
        CIFAR10.read("test", tmp_path)


def test_real_images(real_data: Path) -> None:
    source, test = cifar.lite_source(real_data), cifar.lite_held_out(real_data)
    assert (len(source), len(test)) == (6_000, 1_000)
    assert [test.classes[label] for label in test.labels[:5]] == ["cat", "ship", "ship", "airplane", "frog"]
    assert source.classes[source.labels[0]] == "frog"
    seen = {image.tobytes() for image in source.images}
    assert not any(image.tobytes() in seen for image in test.images)
