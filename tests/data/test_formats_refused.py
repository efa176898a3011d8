"""What each reader says of a file whose contents are wrong: one line, that names the file and what is allowed."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from onedomain.data import formats
from tests.data.published import COLOUR, DIGITS, GREY, N, idx, refusal, svhn_labels, write_idx, write_png


def test_idx_says_what_is_wrong(tmp_path: Path) -> None:
    images, read = write_idx(tmp_path)
    labels = tmp_path / "labels"
    images.write_bytes(idx(GREY, magic=2049))
    assert "magic number 2049 found; allowed: 2051 (idx file of images)" in refusal(lambda: read(images), images)
    images.write_bytes(idx(GREY) + b"more")
    assert "9412 bytes of data found; allowed: 9408 (12×28×28)" in refusal(lambda: read(images), images)
    images.write_bytes(struct.pack(">IIII", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1))
    refusal(lambda: read(images), images)
    images.write_bytes(idx(GREY[:-1]))
    assert "12 labels for 11 images" in refusal(lambda: read(images), labels)
    images.write_bytes(idx(GREY))
    labels.write_bytes(idx(DIGITS + 2))
    assert refusal(lambda: read(images), labels).endswith("label 10 found; allowed: 0 to 9")


@pytest.mark.parametrize("kind", [np.uint8, np.float64, np.int32])
def test_mat_labels_may_be_of_any_number_type(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    savemat(path, {"other": np.eye(3), "X": COLOUR.transpose(1, 2, 3, 0), "y": svhn_labels().astype(kind).T})
    np.testing.assert_array_equal(formats.read_mat(path)[1], DIGITS)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"X": COLOUR.transpose(1, 2, 3, 0), "y": svhn_labels() + 1}, "label 11 found; allowed: 1 to 10 (10 means"),
        ({"X": COLOUR.transpose(1, 2, 3, 0), "y": DIGITS}, "label 0 found; allowed: 1 to 10"),
        ({"X": COLOUR.transpose(1, 2, 3, 0), "y": svhn_labels() + 0.5}, "label 10.5 found"),
        ({"X": COLOUR.transpose(1, 2, 3, 0), "y": svhn_labels()[:-1]}, "11 labels for 12 images"),
        ({"X": COLOUR.transpose(1, 2, 3, 0)}, "'y' is missing"),
        ({"y": svhn_labels()}, "'X' is missing"),
        ({"X": COLOUR, "y": svhn_labels()}, "X is uint8 of shape (12, 32, 32, 3); allowed: uint8, (height, "),
        ({"X": COLOUR.transpose(1, 2, 3, 0) / 255, "y": svhn_labels()}, "X is float64"),
        ({"X": np.array([[1, "a"]], dtype=object), "y": svhn_labels()}, "X is no array of numbers"),
    ],
)
def test_mat_says_what_is_wrong(variables: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "test_32x32.mat"
    savemat(path, variables)
    assert told in refusal(lambda: formats.read_mat(path), path)


def test_syn_may_write_zero_as_zero(tmp_path: Path) -> None:
    path = tmp_path / "synth_test_32x32.mat"
    savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": DIGITS})
    np.testing.assert_array_equal(formats.read_mat(path, lowest=0)[1], DIGITS)
    savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": DIGITS + 2})
    assert "label 11 found; allowed: 0 to 10" in refusal(lambda: formats.read_mat(path, lowest=0), path)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"train/data": np.zeros((2, 256)), "train/target": [0, 1]}, "'test/data' is missing"),
        ({"test/data": np.zeros((2, 256))}, "'test/target' is missing"),
        ({"test/data": np.zeros((2, 255)), "test/target": [0, 1]}, "'test/data' is float64 of shape (2, 255)"),
        ({"test/data": np.zeros((2, 256), np.uint8), "test/target": [0, 1]}, "'test/data' is uint8"),
        ({"test/data": np.full((2, 256), 1.5), "test/target": [0, 1]}, "pixel value 1.5 found; allowed: 0 to 1"),
        ({"test/data": np.full((2, 256), np.nan), "test/target": [0, 1]}, "pixel value nan found"),
        ({"test/data": np.zeros((2, 256)), "test/target": [0, 11]}, "label 11 found; allowed: 0 to 9"),
        ({"test/data": np.zeros((2, 256)), "test/target": [0]}, "1 labels for 2 images"),
        ({"test/data/deeper": 1, "test/target": [0]}, "'test/data' is missing"),
    ],
)
def test_h5_says_what_is_wrong(members: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "usps.h5"
    with h5py.File(path, "w") as file:
        for key, value in members.items():
            file[key] = value
    assert told in refusal(lambda: formats.read_usps_h5(path, "test"), path)


def test_libsvm_leaves_out_zeros(tmp_path: Path) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(b"10 1:-1 3:1\n1 256:0.5\n"))
    images, labels = formats.read_usps_libsvm(path)
    assert labels.tolist() == [9, 0]
    assert images[0, 0, :3].tolist() == [0, 128, 255]
    assert images[1, 15, 15] == 191


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("11 1:0.5", "label 11 found; allowed: 1 to 10 (1 means digit 0)"),
        ("1 1:0.5\n2 1:7", "pixel value 7 found; allowed: -1 to 1"),
        ("1 1:0.5\n2 0:1", "line 2 cannot be understood"),
        ("1 257:1", "line 1 cannot be understood"),
        ("1 3:1 2:1", "line 1 cannot be understood"),
        ("1 1:x", "line 1 cannot be understood"),
        ("1 1:0.5 2", "line 1 cannot be understood"),
        ("1 nan:0.5", "line 1 cannot be understood"),
        ("", "0 labels for 0 images"),
    ],
)
def test_libsvm_says_what_is_wrong(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(text.encode()))
    assert told in refusal(lambda: formats.read_usps_libsvm(path), path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("00000000.png 11", "label 11 found in line 1; allowed: 0 to 9"),
        ("00000000.png", "line 1 is '00000000.png'"),
        ("../mnist_m_test/00000000.png 7", "line 1 is"),
        (".. 7", "line 1 is '.. 7'"),
        ("00000000.png seven", "line 1 is"),
        ("", "line 1 is ''"),
    ],
)
def test_image_list_says_what_is_wrong(line: str, told: str, tmp_path: Path) -> None:
    _, read = write_png(tmp_path)
    path = tmp_path / "mnist_m_test_labels.txt"
    path.write_text(f"{line}\n")
    assert told in refusal(lambda: read(path), path)


def test_image_list_names_the_image(tmp_path: Path) -> None:
    image, read = write_png(tmp_path)
    image.write_bytes(b"no image")
    assert "cannot be read" in refusal(lambda: read(image), image)
    Image.fromarray(GREY[0]).save(image)
    assert "28×28 pixels; allowed: 32×32" in refusal(lambda: read(image), image)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"x_train": GREY, "y_train": DIGITS}, "'x_test' is missing; allowed: x_<split> and y_<split>; found:"),
        ({"x_test": GREY}, "'y_test' is missing"),
        ({"x_test": GREY.reshape(N, -1), "y_test": DIGITS}, "x_test is uint8 of shape (12, 784)"),
        ({"x_test": COLOUR.transpose(0, 3, 1, 2), "y_test": DIGITS}, "x_test is uint8 of shape (12, 3, 32, 32)"),
        ({"x_test": GREY / 255, "y_test": DIGITS}, "x_test is float64"),
        ({"x_test": GREY, "y_test": DIGITS[:-1]}, "11 labels for 12 images"),
        ({"x_test": GREY, "y_test": DIGITS + 2}, "label 10 found; allowed: 0 to 9"),
        ({"x_test": GREY, "y_test": DIGITS - 1}, "label -1 found"),
        ({"x_test": GREY, "y_test": np.eye(N, 10)}, "y_test has shape (12, 10)"),
        ({"x_test": GREY, "y_test": DIGITS.astype(str)}, "labels are of type <U21"),
        ({"x_test": GREY[:0], "y_test": DIGITS[:0]}, "0 labels for 0 images"),
    ],
)
def test_npz_says_what_is_wrong(members: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    np.savez(path, **members)
    assert told in refusal(lambda: formats.read_npz(path, "test"), path)


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    exploded = tmp_path / "exploded"
    bomb = Bomb(exploded)
    pickle.loads(pickle.dumps(bomb))
    assert exploded.exists(), "the bomb itself must work, or this test shows nothing"
    exploded.unlink()

    path = tmp_path / "mnist.npz"
    np.savez(path, x_test=GREY, y_test=np.array([bomb] * N, dtype=object))
    told = refusal(lambda: formats.read_npz(path, "test"), path)
    assert "'y_test' holds Python objects, which are never loaded" in told
    path.write_bytes(pickle.dumps({"x_test": bomb}))
    refusal(lambda: formats.read_npz(path, "test"), path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_test.npy", pickle.dumps(bomb))
        archive.writestr("y_test", b"no array")
    refusal(lambda: formats.read_npz(path, "test"), path)
    refusal(lambda: formats.npz_counts(path), path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([bomb], dtype=object))
    path.write_bytes(buffer.getvalue())
    refusal(lambda: formats.read_npz(path, "test"), path)
    assert not exploded.exists()


def test_a_single_array_is_no_npz_file(tmp_path: Path) -> None:
    np.save(tmp_path / "mnist.npy", DIGITS)
    (tmp_path / "mnist.npy").rename(tmp_path / "mnist.npz")
    assert "it is no .npz file" in refusal(lambda: formats.read_npz(tmp_path / "mnist.npz", "test"), tmp_path)


@pytest.mark.parametrize(("pack", "read"), [
    (gzip.compress, lambda path: formats.read_idx(path, path)),
    (bz2.compress, formats.read_usps_libsvm),
])  # fmt: skip
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(pack, read, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(formats, "MOST_BYTES", 1000)
    (tmp_path / "packed").write_bytes(pack(bytes(1001)))
    assert "it unpacks to more than 1,000 bytes" in refusal(lambda: read(tmp_path / "packed"), tmp_path)


@pytest.mark.parametrize("read", [formats.read_mat, formats.read_usps_libsvm, lambda path: formats.read_npz(path, "x")])
def test_a_pipe_is_not_waited_for(read, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is no file" in refusal(lambda: read(tmp_path / "pipe"), tmp_path)
