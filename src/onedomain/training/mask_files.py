"""Predictions of pixels as files: a mask and an uncertainty map per image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.files import write_atomically
from onedomain.data.folders import tidied
from onedomain.data.image_files import decode_image, image_size
from onedomain.errors import UserError
from onedomain.evaluation.masks import mask_as_png, uncertainty_as_png
from onedomain.training.run import Run


def predict_to_files(run: Run, files: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Label the pixels of image files, one after another: two pictures each, of the image's own size, and a summary."""
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
    with tidied(folder):
        return [_predicted(run, *each, folder) for each in zip(files, names, pixels, strict=True)]


def _predicted(run: Run, file: str, name: str, image: np.ndarray, folder: Path) -> dict[str, Any]:
    size = image_size(Path(file))
    said = run.predict(image[None])
    mask, uncertainty = folder / f"{name}.mask.png", folder / f"{name}.uncertainty.png"
    write_atomically(mask, mask_as_png(said.labels[0], run.classes, size))
    write_atomically(uncertainty, uncertainty_as_png(said.uncertainty[0], run.classes, size))
    shares = np.bincount(said.labels[0].ravel(), minlength=len(run.classes)) / said.labels[0].size
    return {
        "file": file,
        "mask": str(mask),
        "uncertainty_map": str(uncertainty),
        "shares": {name: float(share) for name, share in zip(run.classes, shares, strict=True) if share > 0},
        "uncertainty": float(said.uncertainty[0].mean()),
        "mutual_information": float(said.mutual_information[0].mean()),
        "domain_score": None if said.domain_score is None else float(said.domain_score[0]),
        "out_of_domain": None if said.out_of_domain is None else bool(said.out_of_domain[0]),
    }
