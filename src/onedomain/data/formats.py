"""The file formats in which the digit data sets are published: one reader each, from files to arrays.

Every reader returns uint8 images, (N, H, W) or (N, H, W, 3), and int64 labels from 0 to 9, in the order of
the file. A damaged file ends in a `UserError` of one line that names it; nothing in a file is ever executed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onedomain.errors import UserError

if TYPE_CHECKING:
    from PIL.Image import Image

# Pillow would try some fifty formats, and start a program for one of them.
IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM")

MOST_BYTES = 2**31 - 1  # that a packed file may hold; the largest published one holds 1.5·10⁹

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Arrays = tuple[Images, Labels]

_IDX_IMAGES, _IDX_LABELS = 2051, 2049  # the magic numbers: unsigned bytes in three dimensions, and in one
_GZIP = b"\x1f\x8b"
_USPS_SIDE = 16
_MAT_MATRIX, _MAT_COMPRESSED = 14, 15
_MAT_STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MAT_CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))


def read_idx(images: Path, labels: Path) -> Arrays:
    """MNIST: an idx file of images and one of labels, each plain or gzip (told apart by content)."""
    return pair(labels, _idx(images, _IDX_IMAGES, 3), labels_within(labels, _idx(labels, _IDX_LABELS, 1)))


def _idx(path: Path, magic: int, dimensions: int) -> Images:
    with decoding(path, "a whole idx file, plain or gzip"):
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = _unpacked(gzip.GzipFile(fileobj=io.BytesIO(content)))
    header = 4 * (1 + dimensions)
    if len(content) < header:
        raise UserError(str(path), f"ends after {len(content)} bytes", f"a header of {header} bytes, then data")
    found, *shape = (int.from_bytes(content[i : i + 4], "big") for i in range(0, header, 4))
    if found != magic:
        what = "images" if magic == _IDX_IMAGES else "labels"
        raise UserError(str(path), f"magic number {found} found", f"{magic} (idx file of {what})")
    if len(content) - header != math.prod(shape):
        size = "×".join(map(str, shape))
        raise UserError(str(path), f"{len(content) - header} bytes of data found", f"{math.prod(shape)} ({size})")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def read_mat(path: Path, lowest: int = 1) -> Arrays:
    """SVHN and SYN: a MATLAB file with `X`, (H, W, 3, N), and `y`, in which label 10 is the digit 0."""
    with decoding(path, "a whole MATLAB file of version 5"):
        content = _mat_variables(path.read_bytes(), ("X", "y"))
    missing = [key for key in ("X", "y") if key not in content]
    if missing:
        raise UserError(str(path), f"'{missing[0]}' is missing", "variables X (images) and y (labels)")
    x = content["X"]
    require_form(path, "X", x, x.dtype == np.uint8 and x.ndim == 4 and x.shape[2] == 3, "uint8, (height, width, 3, N)")
    labels = labels_within(path, content["y"], lowest, 10, " (10 means digit 0)")
    return pair(path, np.ascontiguousarray(x.transpose(3, 0, 1, 2)), labels % 10)


def _mat_variables(content: bytes, wanted: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """The wanted arrays of a MATLAB file of version 5. Not scipy's loadmat: damaged files make it crash."""
    order = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(content[124:128])
    if order is None:
        raise ValueError("it has not the header of version 5")
    found = {}
    for kind, element in _mat_elements(memoryview(content)[128:], order):
        if kind == _MAT_COMPRESSED:
            kind, element = next(_mat_elements(memoryview(_inflated(element)), order), (0, element))
        parts = list(_mat_elements(element, order)) if kind == _MAT_MATRIX else []
        if len(parts) < 4:
            continue
        (_, flags), (_, shape), (_, name_bytes), (storage, numbers) = parts[:4]
        name = bytes(name_bytes).decode("latin-1")
        if name not in wanted:
            continue
        kind = struct.unpack_from(order + "I", flags)[0] & 0xFF
        if kind not in _MAT_CLASSES or storage not in _MAT_STORAGE:
            raise ValueError(f"{name} is no array of numbers")
        array = np.frombuffer(numbers, order + _MAT_STORAGE[storage]).astype(_MAT_CLASSES[kind], copy=False)
        found[name] = array.reshape(np.frombuffer(shape, order + "u4").tolist(), order="F")
    return found


def _inflated(element: memoryview) -> bytes:
    inflate = zlib.decompressobj()
    content = inflate.decompress(element, MOST_BYTES)
    if not inflate.eof:
        raise ValueError(f"it is cut off, or unpacks to more than {MOST_BYTES:,} bytes")
    return content


def _unpacked(file: io.BufferedIOBase) -> bytes:
    """All of a packed file, unless a small one says that it is a huge one."""
    with file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
    return content


def _mat_elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The kind and the bytes of each element of a MATLAB file, or of each part of one."""
    end = 0
    while end < len(data):
        kind, size = struct.unpack_from(order + "II", data, end)
        start = end + 8
        if kind >> 16:  # four bytes or less stand in the tag itself
            kind, size, start = kind & 0xFFFF, kind >> 16, end + 4
            end += 8
        else:
            end = start + size + (0 if kind == _MAT_COMPRESSED else -size % 8)
        if start + size > min(end, len(data)):
            raise ValueError("it ends in the middle of a variable")
        yield kind, data[start : start + size]


def read_usps_h5(path: Path, split: str) -> Arrays:
    """USPS as HDF5: one group per split, with `data`, (N, 256) from 0 to 1, and `target`, 0 to 9."""
    import h5py

    wanted = f"{split}/data", f"{split}/target"
    with decoding(path, "a whole HDF5 file"), h5py.File(path, "r") as file:
        for key in wanted:
            if not isinstance(file.get(key), h5py.Dataset):
                raise UserError(str(path), f"'{key}' is missing", " and ".join(wanted))
        pixels, target = file[wanted[0]], file[wanted[1]]
        fits = pixels.dtype.kind == "f" and pixels.ndim == 2 and pixels.shape[1] == _USPS_SIDE**2
        require_form(path, f"'{wanted[0]}'", pixels, fits, "floats of shape (N, 256)")
        pixels, target = pixels[()], target[()]
    return pair(path, _usps_images(path, pixels, 0, 1), labels_within(path, target))


def read_usps_libsvm(path: Path) -> Arrays:
    """USPS as LIBSVM publishes it: bzip2, one line "label index:value …" per image; label 1 is the digit 0."""
    with decoding(path, "a whole bzip2 file"):
        lines = _unpacked(bz2.BZ2File(path)).splitlines()
    pixels = np.zeros((len(lines), _USPS_SIDE**2))  # what a sparse line leaves out is 0
    labels = np.zeros(len(lines))
    every_index = np.arange(1, _USPS_SIDE**2 + 1)
    for row, line in enumerate(lines):
        try:
            numbers = np.array(line.replace(b":", b" ").split(), dtype=np.float64)
        except ValueError:
            numbers = np.empty(0)
        index = numbers[1::2]
        if len(numbers) % 2 == 0 or not np.isin(index, every_index).all() or (np.diff(index) <= 0).any():
            raise UserError(
                str(path),
                f"line {row + 1} cannot be understood",
                '"label index:value …", indices rising from 1 to 256',
            )
        labels[row] = numbers[0]
        pixels[row, index.astype(np.int64) - 1] = numbers[2::2]
    return pair(
        path,
        _usps_images(path, pixels, -1, 1),
        labels_within(path, labels, 1, 10, " (1 means digit 0)") - 1,
    )


def _usps_images(path: Path, pixels: npt.NDArray[Any], low: int, high: int) -> Images:
    slack = 1e-6  # float32 files may exceed the range by a rounding error
    outside = pixels[~((pixels >= low - slack) & (pixels <= high + slack))]
    if outside.size:
        raise UserError(str(path), f"pixel value {outside[0]:g} found", f"{low} to {high}")
    # Rounded, not cut off as torchvision does: so both files give the same bytes, and no image gets darker.
    grey = np.rint((pixels.astype(np.float64).clip(low, high) - low) / (high - low) * 255)
    return grey.astype(np.uint8).reshape(-1, _USPS_SIDE, _USPS_SIDE)


def read_image_list(folder: Path, labels: Path) -> Arrays:
    """MNIST-M: a folder of PNG images and a text file with one line "name label" per image."""
    with decoding(labels, "a text file"):
        lines = labels.read_text(encoding="utf-8").splitlines()
    images, digits = [], []
    for number, line in enumerate(lines, 1):
        name, _, digit = line.strip().rpartition(" ")
        if not digit.isdecimal() or Path(name).name != name or name in ("", ".."):
            raise UserError(str(labels), f"line {number} is {line[:40]!r}", '"name label", as in "00000000.png 7"')
        if digit not in set("0123456789"):
            raise UserError(str(labels), f"label {digit[:20]} found in line {number}", "0 to 9")
        file = folder / name
        with open_image(file, "a whole PNG image", formats=("PNG",)) as picture:
            images.append(np.asarray(picture.convert("RGB")))
        if images[-1].shape != images[0].shape:
            size, first = ("×".join(map(str, image.shape[:2])) for image in (images[-1], images[0]))
            raise UserError(str(file), f"is an image of {size} pixels", f"{first}, as the first of the list")
        digits.append(int(digit))
    stacked = np.stack(images) if images else np.empty((0, 0, 0, 3), np.uint8)
    return pair(labels, stacked, np.array(digits, dtype=np.int64))


def read_npz(path: Path, split: str) -> Arrays:
    """Our prepared form: an .npz file with `x_<split>`, uint8, and `y_<split>`, whole numbers from 0 to 9."""
    x, y = (npz_array(path, key) for key in (f"x_{split}", f"y_{split}"))
    fits = x.dtype == np.uint8 and (x.ndim == 3 or (x.ndim == 4 and x.shape[3] == 3))
    require_form(path, f"x_{split}", x, fits, "uint8 of shape (N, H, W) or (N, H, W, 3)")
    if y.ndim != 1:
        raise UserError(str(path), f"y_{split} has shape {y.shape}", f"({len(x)},)")
    return pair(path, x, labels_within(path, y))


def npz_counts(path: Path) -> dict[str, int]:
    """How many images each split of a prepared file has labels for (the images are not read)."""
    with decoding(path, "a whole .npz file"), zipfile.ZipFile(path) as archive:
        keys = [name.removesuffix(".npy") for name in archive.namelist()]
    return {key[2:]: len(np.atleast_1d(npz_array(path, key))) for key in keys if key.startswith("y_")}


def npz_array(path: Path, key: str) -> npt.NDArray[Any]:
    with decoding(path, "a whole .npz file of plain arrays"), path.open("rb") as file:
        if not zipfile.is_zipfile(file):  # numpy would take a .npy file of any name
            raise ValueError("it is no .npz file")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            if key not in archive.files:
                found = ", ".join(archive.files) or "-"
                raise UserError(str(path), f"'{key}' is missing", f"x_<split> and y_<split>; found: {found}")
            try:
                array: npt.NDArray[Any] = archive[key]
            except ValueError as error:
                if "pickle" not in str(error):
                    raise
                problem = f"'{key}' holds Python objects, which are never loaded"
                raise UserError(str(path), problem, "plain arrays of numbers") from error
    if not isinstance(array, np.ndarray):  # numpy returns anything else as bytes
        raise UserError(str(path), f"'{key}' is no array", "plain arrays of numbers")
    return array


def require_form(path: Path, name: str, array: Any, fits: bool, allowed: str) -> None:
    """Refuse an array of the wrong type or shape."""
    if not fits:
        raise UserError(str(path), f"{name} is {array.dtype} of shape {array.shape}", allowed)


def labels_within(where: Path | str, labels: Any, low: int = 0, high: int = 9, meaning: str = "") -> Labels:
    flat = np.asarray(labels).reshape(-1)
    if flat.dtype.kind not in "iuf":
        raise UserError(str(where), f"labels are of type {flat.dtype}", "whole numbers")
    wrong = flat[~((flat >= low) & (flat <= high) & (flat == np.rint(flat)))]
    if wrong.size:
        raise UserError(str(where), f"label {wrong[0]:g} found", f"{low} to {high}{meaning}")
    return flat.astype(np.int64)


def pair(where: Path | str, images: Images, labels: Labels) -> Arrays:
    if len(images) != len(labels) or not len(labels):
        problem = f"{len(labels)} labels for {len(images)} images"
        raise UserError(str(where), problem, "as many labels as images, and at least one")
    return images, labels


@contextmanager
def decoding(path: Path | str, allowed: str) -> Iterator[None]:
    """Report whatever a decoder raises in one line: zlib, HDF5 and Pillow do not document their errors."""
    try:
        if isinstance(path, Path) and path.exists() and not path.is_file():  # a pipe would be waited for without end
            raise UserError(str(path), "is no file", allowed)
        yield
    except UserError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        raise UserError(str(path), f"cannot be read ({reason[:120]})", allowed) from error


@contextmanager
def open_image(path: Path, allowed: str, formats: tuple[str, ...] = IMAGE_FORMATS) -> Iterator[Image]:
    """An image file, not decoded yet: whatever is wrong with it, also later in the block, is told in one line."""
    from PIL import Image

    with decoding(path, allowed):
        if not path.exists():
            raise UserError(str(path), "does not exist", allowed)
        with Image.open(path, formats=formats) as opened:
            if opened.format == "TIFF":
                _silence_libtiff()
            yield opened


@lru_cache(maxsize=1)
def _silence_libtiff() -> None:
    """What it prints of a damaged file would stand beside our own line. Only a Pillow that brings it can be asked."""
    import ctypes

    import PIL

    package = Path(PIL.__file__).parent
    for library in (*package.parent.glob("[pP]illow.libs/libtiff*"), *package.glob(".dylibs/libtiff*")):
        ctypes.CDLL(str(library)).TIFFSetErrorHandler(None)
