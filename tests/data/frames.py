"""Tiny frames in the published form, written byte by byte: OpenCV is what the tests are about."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from onedomain.data.datasets import synthia


def write_png16(path: Path, rgb: np.ndarray) -> None:
    """A 16-bit RGB PNG, its first channel first."""
    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rgb)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_mask(path: Path, ids: np.ndarray) -> None:
    """A label file of SYNTHIA: the class, the instance, nothing."""
    write_png16(path, np.stack([ids, 200 * (ids == 8), np.zeros_like(ids)], -1))


def make_sequence(data: Path, location: str, condition: str, count: int = 5, shift: int = 0) -> Path:
    """A sequence of 12×20 frames: sky above a road, a car that comes nearer, a strip of void below."""
    folder = data / "synthia" / synthia.SEQUENCES[f"{location}-{condition}"]
    images, masks = folder / "RGB" / synthia.CAMERA, folder / "GT" / "LABELS" / synthia.CAMERA
    images.mkdir(parents=True)
    masks.mkdir(parents=True)
    rng = np.random.default_rng([count, shift])
    for number in range(count):
        ids = np.full((12, 20), 3)
        ids[:5] = 1
        ids[6:9, number : number + 4] = 8
        ids[11] = 0
        colours = np.zeros((16, 3))
        colours[[1, 3, 8]] = (200, 220, 255), (110, 100, 110), (220, 20, 20)
        pixels = colours[ids] + rng.integers(-8, 9, (12, 20, 3)) - shift
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(images / f"{number:06d}.png")
        write_mask(masks / f"{number:06d}.png", ids)
    return folder
