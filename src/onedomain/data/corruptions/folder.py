"""A user's own images under corruptions: every file of a folder, in the same place below another one."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onedomain.data import processes
from onedomain.data.corruptions import SEVERITIES, VERSION, Corruption, corrupt, set_for
from onedomain.data.corruptions.shared import Bytes
from onedomain.data.files import changed_since, make_folder, write_atomically
from onedomain.data.folders import holds_anything, sole_use
from onedomain.data.image_files import decode_image, find_images
from onedomain.data.progress import progress
from onedomain.data.within import beneath
from onedomain.errors import UserError

MADE = "corrupted.json"  # is in a folder that `corrupt_folder` filled, and says how


class Picture(NamedTuple):
    """One file to corrupt: the work of one process at a time."""

    file: Path
    key: str  # its path inside the folder: what is drawn for it does not depend on the other files
    out: Path
    corruption: Corruption


def corrupt_folder(
    folder: Path,
    kinds: Sequence[str],
    severities: Sequence[int],
    out: Path,
    *,
    overlays: Path,
    seed: int = 0,
    constants: str | None = None,
    shown: bool = True,
) -> Counter[str]:
    """Write every image of `folder`, corrupted, below `out`, under the same sub-folder and name.

    With several kinds each has a sub-folder of its own, and so has each of several severities. Existing files
    are skipped, so the same call resumes after a kill. Returns how many images each set of constants made.
    """
    if not folder.is_dir():
        raise UserError(str(folder), "is not a folder", "a folder of images")
    if out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents:
        raise UserError("--out", f"{out} lies in the folder of the images", "a folder elsewhere")
    files = find_images(folder)
    made = {
        "of": str(folder.resolve()),
        "kinds": list(kinds),
        "severities": list(severities),
        "seed": seed,
        "constants": constants or "by size",
        "version": VERSION,
    }
    if out.exists() and not (out / MADE).exists() and (not out.is_dir() or holds_anything(out)):
        raise UserError("--out", f"{out} exists and is not empty", "a new or empty folder")
    pictures = []
    for kind in kinds:
        for severity in severities:
            below = out / kind if len(kinds) > 1 else out
            below = below / str(severity) if len(severities) > 1 else below
            for file in files:
                inside = file.relative_to(folder)
                pictures.append(Picture(file, inside.as_posix(), below / inside, Corruption(kind, severity)))
    used: Counter[str] = Counter()
    work = partial(_corrupt_file, seed=seed, constants=constants, overlays=overlays, within=out)
    with sole_use(out):
        changed = changed_since(out / MADE, made)
        if changed:
            key, before = changed
            given = f"{out} was filled with {key} {before!r}, and now it is {made[key]!r}"
            raise UserError("--out", given, "a new or empty folder, or the same again to go on")
        left = [picture for picture in pictures if not picture.out.exists()]
        for parent in {picture.out.parent for picture in left}:
            make_folder(parent)
        start = len(pictures) - len(left)
        with progress("corrupt", len(pictures), start=start, shown=shown, unit="images") as update:
            for done, name in enumerate(processes.results(work, left), start=start + 1):
                used[name] += 1
                update(done, {})
    return used


def _corrupt_file(picture: Picture, seed: int, constants: str | None, overlays: Path, within: Path) -> str:
    """Decode, corrupt and write one image; the name of the constants that suited it."""
    pixels = decode_image(picture.file, None, channels=3)
    name = constants or set_for(*pixels.shape[:2])
    corrupted = corrupt(
        pixels[None], *picture.corruption, seed=seed, keys=[picture.key], constants=name, overlays=overlays
    )
    with beneath(within):  # this may be a process of its own
        write_atomically(picture.out, _encoded(corrupted[0], picture.out))
    return name


def _encoded(pixels: Bytes, path: Path) -> bytes:
    """The image in the format of its ending, with as little loss as that has."""
    from PIL import Image

    file = io.BytesIO()
    kind = Image.registered_extensions()[path.suffix.lower()]
    best: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, kind, **best.get(kind, {}))
    return file.getvalue()


def parse_severities(text: str) -> tuple[int, ...]:
    if text == "all":
        return SEVERITIES
    if text not in map(str, SEVERITIES):
        raise UserError("--severity", f"got {text!r}", "1 (mild) to 5 (severe), or all")
    return (int(text),)
