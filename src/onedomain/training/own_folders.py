"""Folders of the user's own images, in the form in which a run takes them."""

from __future__ import annotations

import re
from pathlib import Path

from onedomain.data.domain import Domain
from onedomain.data.frames import frame_folder
from onedomain.data.image_folder import image_folder
from onedomain.errors import UserError
from onedomain.training.run import Run


def source_folder(path: str, size: str | None) -> Domain:
    """A folder with one sub-folder per class, to train on; `size` is HEIGHTxWIDTH, or None if all images have one."""
    if all((Path(path) / part).is_dir() for part in ("images", "labels")):
        found = "holds images/ and labels/, frames with masks, of which the classes are not known"
        raise UserError("--source", found, "from Python: od.fit(method, od.frame_folder(DIR, classes=…, size=…))")
    return image_folder(path, name="source", split="train", size=None if size is None else parse_size(size))


def parse_size(text: str) -> tuple[int, int]:
    """A size as it is typed, as (height, width).

    >>> parse_size("32x48")
    (32, 48)
    """
    found = re.fullmatch(r"([1-9]\d*)[x×]([1-9]\d*)", text)
    if not found:
        raise UserError("--size", f"got {text!r}", "HEIGHTxWIDTH, such as 32x32")
    return int(found[1]), int(found[2])


def folder_for(run: Run, path: str, name: str, split: str) -> Domain:
    """A folder in the form of the run's source: one sub-folder per class, or frames and their masks."""
    source = run.manifest.source
    height, width, channels = source.image_shape
    if source.dense:
        return frame_folder(
            path,
            classes=run.classes,
            size=(height, width),
            void=source.void,
            name=name,
            split=split,
            channels=channels,
        )
    return image_folder(path, name=name, split=split, size=(height, width), channels=channels, classes=run.classes)


def named_folders(run: Run, texts: list[str]) -> dict[str, Domain]:
    """The folders of `--on NAME=DIR`, by their names."""
    domains: dict[str, Domain] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UserError("--on", f"got {text!r}", "NAME=DIR, such as --on night=images/night")
        if name in domains:
            raise UserError("--on", f"{name!r} is given twice", "each name once")
        domains[name] = folder_for(run, path, name, "all")
    return domains
