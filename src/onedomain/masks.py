"""Predictions of pixels as pictures: the mask in the colours of its classes, and how unsure each pixel is."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data import camvid, synthia
from onedomain.data.formats import decoding
from onedomain.data.image_files import decode_image
from onedomain.errors import UserError
from onedomain.files import make_folder, write_atomically
from onedomain.run import Run

_KNOWN = {synthia.CLASSES: synthia.COLOURS, camvid.CLASSES: camvid.COLOURS}  # as they are published
_BITS = 8  # of a colour


def palette(classes: Sequence[str]) -> np.ndarray:
    """A colour for each class, bytes of (classes, 3): the published ones, else those of Pascal VOC, all different.

    >>> palette(["a", "b", "c"]).tolist()
    [[0, 0, 0], [128, 0, 0], [0, 128, 0]]
    """
    known = _KNOWN.get(tuple(classes))
    if known is not None:
        return np.array(known, np.uint8)
    numbers = np.arange(len(classes))
    colours = np.zeros((len(classes), 3), np.uint8)
    for place in range(_BITS):  # the bits of a number go to red, green and blue in turn, the lowest to their highest
        for channel in range(3):
            colours[:, channel] |= (((numbers >> (3 * place + channel)) & 1) << (_BITS - 1 - place)).astype(np.uint8)
    return colours


def mask_as_png(labels: np.ndarray, classes: Sequence[str], size: tuple[int, int]) -> bytes:
    """Labels (H, W) as an indexed PNG of `size`, (width, height), whose values are the classes' numbers."""
    from PIL import Image

    image = Image.fromarray(labels.astype(np.uint8))
    image.putpalette(palette(classes).tobytes())
    return _as_png(image.resize(size, Image.Resampling.NEAREST))


def uncertainty_as_png(entropy: np.ndarray, classes: Sequence[str], size: tuple[int, int]) -> bytes:
    """Entropies (H, W) in nats as a grey PNG: black is certain, white is log(classes), clueless."""
    from PIL import Image

    grey = np.rint(255 * (entropy / math.log(len(classes))).clip(0, 1)).astype(np.uint8)
    return _as_png(Image.fromarray(grey).resize(size, Image.Resampling.BILINEAR))


def _as_png(image: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()


def predict_to_files(run: Run, files: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Label the pixels of image files, one after another: two pictures each, of the image's own size, and a summary."""
    from PIL import Image

    height, width, channels = run.manifest.source.image_shape
    if len(run.classes) > 256:
        raise UserError("run", f"has {len(run.classes)} classes", "at most 256, the colours of an indexed PNG")
    names = [Path(file).stem for file in files]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise UserError("images", f"two are called {twice!r}", "images of different names, or a call for each")
    pixels = [
        decode_image(Path(file), (height, width), channels) for file in files
    ]  # all are read before any is written
    make_folder(folder)
    rows = []
    for file, name, image in zip(files, names, pixels, strict=True):
        with decoding(Path(file), "a whole image file"), Image.open(file) as opened:
            size = opened.size
        said = run.predict(image[None])
        mask, uncertainty = folder / f"{name}.mask.png", folder / f"{name}.uncertainty.png"
        write_atomically(mask, mask_as_png(said.labels[0], run.classes, size))
        write_atomically(uncertainty, uncertainty_as_png(said.uncertainty[0], run.classes, size))
        shares = np.bincount(said.labels[0].ravel(), minlength=len(run.classes)) / said.labels[0].size
        rows.append(
            {
                "file": file,
                "mask": str(mask),
                "uncertainty_map": str(uncertainty),
                "shares": {name: float(share) for name, share in zip(run.classes, shares, strict=True) if share > 0},
                "uncertainty": float(said.uncertainty[0].mean()),
                "mutual_information": float(said.mutual_information[0].mean()),
                "domain_score": None if said.domain_score is None else float(said.domain_score[0]),
                "out_of_domain": None if said.out_of_domain is None else bool(said.out_of_domain[0]),
            }
        )
    return rows
