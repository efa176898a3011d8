"""Which files a digit domain is read from, what it becomes, and the real data where it is there."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import onedomain as od
from onedomain.data.datasets import digits
from onedomain.data.datasets.base import MissingData
from onedomain.data.datasets.catalogue import CATALOGUE
from onedomain.data.datasets.digits import MNIST, MNIST_M, SVHN
from onedomain.data.domain import Domain
from onedomain.data.image_files import to_rgb32
from onedomain.errors import UserError
from tests.conftest import SHARED

LABELS = np.arange(20) % 10
GREY = np.random.default_rng(0).integers(0, 256, (20, 28, 28), dtype=np.uint8)
COLOUR = np.random.default_rng(1).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)

real_data = pytest.mark.skipif(
    not (SHARED / "digits").is_dir(), reason=f"no real data in {SHARED / 'digits'} (set ONEDOMAIN_DATA)"
)


def write_npz(folder: Path, name: str, **members: np.ndarray) -> Path:
    (folder / "digits").mkdir(exist_ok=True)
    np.savez(folder / "digits" / name, **members)
    return folder / "digits" / name


def write_svhn(path: Path, labels: np.ndarray = LABELS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": np.where(labels == 0, 10, labels)[:, None]})


def write_mnist(folder: Path, prefix: str, labels: np.ndarray, compressed: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images = np.resize(GREY, (len(labels), 28, 28))
    suffix, pack = (".gz", gzip.compress) if compressed else ("", bytes)
    content = struct.pack(">4I", 2051, *images.shape) + images.tobytes()
    (folder / f"{prefix}-images-idx3-ubyte{suffix}").write_bytes(pack(content))
    content = struct.pack(">2I", 2049, len(labels)) + labels.astype(np.uint8).tobytes()
    (folder / f"{prefix}-labels-idx1-ubyte{suffix}").write_bytes(pack(content))


def test_an_image_is_resized_exactly_as_pillow_does() -> None:
    for size in (28, 16):
        grey = GREY[:, :size, :size]
        resized = to_rgb32(grey)
        for image, one in zip(grey, resized, strict=True):
            expected = np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))
            for channel in range(3):
                np.testing.assert_array_equal(one[..., channel], expected)


def test_an_image_of_the_right_form_stays_as_it_is() -> None:
    assert to_rgb32(COLOUR) is COLOUR


@pytest.mark.parametrize("place", ["digits", "digits/svhn", "digits/raw", "svhn", "."])
def test_published_files_are_found_in_every_place(place: str, tmp_path: Path) -> None:
    write_svhn(tmp_path / place / "test_32x32.mat")
    domain = SVHN.load("test", tmp_path)
    np.testing.assert_array_equal(domain.images, COLOUR)
    np.testing.assert_array_equal(domain.labels, LABELS)
    assert (domain.name, domain.split, domain.classes) == ("svhn", "test", tuple("0123456789"))
    assert domain.note == "20 of 26,032 images"


def test_the_prepared_file_wins(tmp_path: Path) -> None:
    write_svhn(tmp_path / "digits" / "svhn" / "test_32x32.mat")
    write_npz(tmp_path, "svhn.npz", x_test=COLOUR[:7], y_test=LABELS[:7])
    assert len(SVHN.load("test", tmp_path)) == 7


def test_a_split_that_the_prepared_file_lacks_is_read_from_the_published_ones(tmp_path: Path) -> None:
    write_svhn(tmp_path / "digits" / "svhn" / "train_32x32.mat")
    write_npz(tmp_path, "svhn.npz", x_test=COLOUR[:7], y_test=LABELS[:7])
    assert len(SVHN.load("train", tmp_path)) == 20


def test_only_the_asked_split_is_read(tmp_path: Path) -> None:
    write_svhn(tmp_path / "digits" / "test_32x32.mat")
    (tmp_path / "digits" / "train_32x32.mat").write_bytes(b"damaged")
    assert len(SVHN.load("test", tmp_path)) == 20
    with pytest.raises(UserError, match=r"train_32x32\.mat: cannot be read"):
        SVHN.load("train", tmp_path)


@pytest.mark.parametrize("compressed", [True, False])
def test_the_source_is_the_first_ten_thousand_in_order(compressed: bool, tmp_path: Path) -> None:
    labels = np.random.default_rng(2).integers(0, 10, 10_050)
    write_mnist(tmp_path / "digits" / "mnist", "train", labels, compressed)
    domain = digits.source(tmp_path)
    assert domain.images.shape == (10_000, 32, 32, 3)
    np.testing.assert_array_equal(domain.labels, labels[:10_000])
    np.testing.assert_array_equal(domain.images[:20], to_rgb32(GREY))
    assert domain.note == ""


def test_a_short_source_is_noted_and_one_without_a_class_refused(tmp_path: Path) -> None:
    write_npz(tmp_path, "mnist.npz", x_train=GREY, y_train=LABELS)
    assert digits.source(tmp_path).note == "20 of 10,000 images"
    write_npz(tmp_path, "mnist.npz", x_train=GREY[:9], y_train=LABELS[:9])
    with pytest.raises(UserError, match="no image of class 9"):
        od.fit("erm", digits.source(tmp_path), steps=1)


@pytest.mark.parametrize("part", [digits.held_out, digits.for_shots])
def test_what_follows_the_source_must_be_there(part: Callable[[Path], Domain], tmp_path: Path) -> None:
    write_mnist(tmp_path / "digits" / "mnist", "train", np.arange(10_000) % 10)
    with pytest.raises(UserError, match=r"mnist \(train\): has 10,000 images; allowed: more than the first 1[02],000"):
        part(tmp_path)


def test_mnist_m_is_found_under_both_spellings(tmp_path: Path) -> None:
    for spelling in ("mnist-m", "mnist_m"):
        folder = tmp_path / spelling / "digits" / spelling
        (folder / "mnist_m_test").mkdir(parents=True)
        Image.fromarray(COLOUR[0]).save(folder / "mnist_m_test" / "00000000.png")
        (folder / "mnist_m_test_labels.txt").write_text("00000000.png 7\n")
        domain = MNIST_M.load("test", tmp_path / spelling)
        np.testing.assert_array_equal(domain.images, COLOUR[:1])
        assert domain.labels.tolist() == [7]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("svhn", "run: onedomain data prepare svhn"),
        ("usps", "run: onedomain data prepare usps"),
        ("mnist", "run: onedomain data prepare mnist"),
        ("syn", "put synth_test_32x32.mat"),
        ("mnist-m", "put the folder mnist_m_test and mnist_m_test_labels.txt"),
    ],
)
def test_missing_data_is_named_with_the_way_to_get_it(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData) as caught:
        CATALOGUE[name].load("test", tmp_path / "nowhere")
    line = str(caught.value)
    assert line.startswith(f"domain '{name}' (test): not found in {tmp_path / 'nowhere'}: ")
    assert CATALOGUE[name].home in line
    assert all(file in line for form in CATALOGUE[name].forms["test"] for file in form.files)
    assert told in line
    assert "\n" not in line
    assert caught.value.exit_code == 2


def test_the_wrong_image_size_is_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path, "svhn.npz", x_test=GREY, y_test=LABELS)
    with pytest.raises(UserError) as caught:
        SVHN.load("test", tmp_path)
    assert str(caught.value) == f"{path}: images of 28×28 found; allowed: 32×32×3, as svhn is published"


def test_a_split_that_does_not_exist_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="part of mnist: 'tests' is not known, did you mean 'test'"):
        MNIST.load("tests", tmp_path)


def test_the_tables_are_read_without_torch() -> None:
    slow = ("torch", "scipy", "PIL")
    code = f"import sys, onedomain.data.datasets.catalogue; sys.exit(any(m in sys.modules for m in {slow}))"
    subprocess.run([sys.executable, "-c", code], check=True)


@real_data
@pytest.mark.parametrize(
    ("name", "split", "count", "first"),
    [
        ("mnist", "test", 10_000, [7, 2, 1, 0, 4]),
        ("mnist-m", "test", 9_001, [7, 2, 1, 0, 4]),
        ("svhn", "test", 10_000, [5, 2, 1, 0, 6]),
        ("svhn", "train", 10_000, [1, 9, 2, 3, 2]),
        ("usps", "test", 2_007, [9, 6, 3, 6, 6]),
        ("usps", "train", 7_291, [6, 5, 4, 7, 3]),
    ],
)
def test_real_domains(name: str, split: str, count: int, first: list[int]) -> None:
    domain = CATALOGUE[name].load(split, SHARED).require_every_class()
    assert domain.images.shape == (count, 32, 32, 3)
    assert domain.labels[:5].tolist() == first
    assert domain.note == {"test": "10,000 of 26,032 images", "train": "10,000 of 73,257 images"}[split] * (
        name == "svhn"
    )


@real_data
def test_real_source() -> None:
    domain = digits.source(SHARED)
    assert domain.images.shape == (10_000, 32, 32, 3)
    assert domain.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(domain.labels).tolist() == [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978]
    with np.load(SHARED / "digits" / "mnist.npz") as archive:
        last = Image.fromarray(archive["x_train"][9_999]).resize((32, 32), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(domain.images[9_999, ..., 1], np.asarray(last))
