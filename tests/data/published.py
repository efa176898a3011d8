"""Small files in exactly the published forms of the digits, and how a damaged one is refused."""

from __future__ import annotations

import bz2
import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from onedomain.data import formats
from onedomain.errors import UserError

N = 12
DIGITS = np.arange(N) % 10
RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (N, 28, 28), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (N, 32, 32, 3), dtype=np.uint8)


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    header = struct.pack(">I", magic if magic is not None else 2048 + array.ndim)
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()


def svmlight(labels: np.ndarray, values: np.ndarray) -> bytes:
    lines = (
        f"{label} " + " ".join(f"{i}:{value:g}" for i, value in enumerate(row, 1) if value)
        for label, row in zip(labels, values, strict=True)
    )
    return bz2.compress(("\n".join(lines) + "\n").encode())


def svhn_labels() -> np.ndarray:
    return np.where(DIGITS == 0, 10, DIGITS).astype(np.uint8)[:, None]


def refusal(read: Callable[[], object], path: Path) -> str:
    """The one line with which a file is refused; it names the file."""
    with pytest.raises(UserError) as caught:
        read()
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line
    assert "; allowed: " in line
    return line


def write_idx(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    (folder / "images").write_bytes(idx(GREY))
    (folder / "labels").write_bytes(idx(DIGITS))
    return folder / "images", lambda path: formats.read_idx(path, folder / "labels")


def write_idx_gz(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    (folder / "images.gz").write_bytes(gzip.compress(idx(GREY)))
    (folder / "labels.gz").write_bytes(gzip.compress(idx(DIGITS)))
    return folder / "images.gz", lambda path: formats.read_idx(path, folder / "labels.gz")


def write_mat(folder: Path, compress: bool = False) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    path = folder / "test_32x32.mat"
    savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": svhn_labels()}, do_compression=compress)
    return path, formats.read_mat


def write_mat_compressed(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    return write_mat(folder, compress=True)


def write_h5(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    path = folder / "usps.h5"
    with h5py.File(path, "w") as file:
        for split in ("train", "test"):
            file[f"{split}/data"] = (GREY[:, :16, :16].reshape(N, 256) / 255).astype(np.float32)
            file[f"{split}/target"] = DIGITS
    return path, lambda path: formats.read_usps_h5(path, "test")


def write_libsvm(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    path = folder / "usps.t.bz2"
    path.write_bytes(svmlight(DIGITS + 1, GREY[:, :16, :16].reshape(N, 256) / 255 * 2 - 1))
    return path, formats.read_usps_libsvm


def write_png(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    (folder / "mnist_m_test").mkdir()
    for i, image in enumerate(COLOUR):
        Image.fromarray(image).save(folder / "mnist_m_test" / f"{i:08}.png")
    lines = "".join(f"{i:08}.png {digit}\n" for i, digit in enumerate(DIGITS))
    (folder / "mnist_m_test_labels.txt").write_text(lines)
    return folder / "mnist_m_test" / "00000003.png", lambda _: formats.read_image_list(
        folder / "mnist_m_test", folder / "mnist_m_test_labels.txt"
    )


def write_npz(folder: Path) -> tuple[Path, Callable[[Path], formats.Arrays]]:
    np.savez_compressed(folder / "mnist.npz", x_test=GREY, y_test=DIGITS)
    return folder / "mnist.npz", lambda path: formats.read_npz(path, "test")


EXPECTED = {
    write_idx: GREY,
    write_idx_gz: GREY,
    write_mat: COLOUR,
    write_mat_compressed: COLOUR,
    write_h5: GREY[:, :16, :16],
    write_libsvm: GREY[:, :16, :16],
    write_png: COLOUR,
    write_npz: GREY,
}
