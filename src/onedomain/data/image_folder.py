"""A user's own images as a `Domain`: a folder with one sub-folder per class, or a table of paths and labels."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.domain import Domain
from onedomain.data.files import as_names, as_path
from onedomain.data.files_on_demand import read_images
from onedomain.data.formats import decoding
from onedomain.data.image_files import find_images, image_size, no_image
from onedomain.data.progress import say
from onedomain.errors import UserError, unknown

TABLES = (".csv", ".parquet")
_PATHS, _LABELS = ("path", "file", "image"), ("label", "class")  # names of columns
PHOTOGRAPHS = 64  # pixels of the shorter side from which images are taken for photographs
SIDE, SMALL_SIDE = 160, 32  # what images of several sizes are brought to: photographs, and smaller ones
LARGEST_SIDE = 224  # larger ones are brought to `SIDE`, too
_LOOKED_AT = 200  # images, to find out their size


def image_folder(
    path: Any,
    *,
    name: str | None = None,
    split: str = "all",
    size: tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
    channels: int = 3,
) -> Domain:
    """A folder with one sub-folder per class, or a table (.csv, .parquet) with the columns `path` and `label`.

    The table may also be a DataFrame of pandas, whose paths are taken from the current folder.
    `size` is (height, width). Without it, images of one size stay as they are up to 224 pixels a side, and others are
    brought to 160×160 (or 32×32, if they are small). `classes` are those of a model that knows them already.
    """
    if hasattr(path, "columns"):
        root = Path("DataFrame")
        found = _of_columns(root, {str(each): path[each].astype(str).tolist() for each in path.columns}, Path())
    else:
        root = as_path(path, "images")
        found = _of_table(root) if root.suffix.lower() in TABLES else _of_folder(root, classes is None)
    names = as_names(classes, "classes") if classes is not None else tuple(in_order({label for _, label in found}))
    for label in dict.fromkeys(label for _, label in found):
        if label not in names:
            raise unknown(f"{root}: class", label, names)
    files = [file for file, _ in found]
    if not files:
        raise no_image(root)
    images = read_images(files, size=size or _usual_size(files, root), channels=channels)
    places = {label: place for place, label in enumerate(names)}
    return Domain(name or root.stem, split, images, np.array([places[label] for _, label in found]), names)


def in_order(labels: Iterable[str]) -> list[str]:
    """Names of classes in the order in which they are numbered: by the alphabet, numbers by their size.

    >>> in_order(["10", "9"]), in_order(["cat", "10", "9"])
    (['9', '10'], ['10', '9', 'cat'])
    """
    names = list(labels)
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else sorted(names)


def _of_folder(root: Path, all_needed: bool) -> list[tuple[Path, str]]:
    if not root.is_dir():
        raise UserError(str(root), "is not a folder", "a folder with one sub-folder per class, or a table")
    found = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not found:
        raise UserError(str(root), "has no sub-folders", "one sub-folder per class")
    return [(file, folder) for folder in found for file in find_images(root / folder, needed=all_needed)]


def _of_table(table: Path) -> list[tuple[Path, str]]:
    """Paths are taken from the folder of the table."""
    return _of_columns(table, _columns(table), table.parent)


def _of_columns(table: Path, columns: dict[str, list[str]], folder: Path) -> list[tuple[Path, str]]:
    chosen = []
    for wanted in (_PATHS, _LABELS):
        names = [each for each in columns if each.lower() in wanted]
        if len(names) != 1:
            given = f"has the columns {', '.join(columns) or 'none'}"
            raise UserError(str(table), given, f"one called {' or '.join(wanted)}")
        chosen.append(columns[names[0]])
    for number, (file, label) in enumerate(zip(*chosen, strict=True), start=2):
        if not (file and label):
            raise UserError(str(table), f"line {number} has no {'label' if file else 'path'}", "both in every line")
    return [(folder / file, label) for file, label in zip(*chosen, strict=True)]


def _columns(table: Path) -> dict[str, list[str]]:
    if not table.is_file():
        raise UserError(str(table), "is not there", "a table with the columns path and label")
    with decoding(table, "a table with the columns path and label"):
        if table.suffix.lower() == ".csv":
            with table.open(newline="", encoding="utf-8-sig") as file:
                header, *rows = list(csv.reader(file)) or [[]]
            for number, row in enumerate(rows, start=2):
                if len(row) != len(header):
                    raise UserError(str(table), f"line {number} has {len(row)} fields", f"{len(header)}, as the header")
            return {name.strip(): [row[place].strip() for row in rows] for place, name in enumerate(header)}
        try:
            from pyarrow import parquet
        except ImportError:
            raise UserError(str(table), "needs pyarrow, which is not installed", "pip install pyarrow") from None
        read = parquet.read_table(table).to_pydict()
        return {name: [str(value) for value in column] for name, column in read.items()}


def _usual_size(files: Sequence[Path], root: Path) -> tuple[int, int] | None:
    """What images are brought to if nothing is said; None leaves them as they are."""
    some = files[:: -(-len(files) // _LOOKED_AT)]
    sizes = {image_size(file) for file in some}
    if len(sizes) == 1 and max(next(iter(sizes))) <= LARGEST_SIDE:
        return None
    side = SIDE if max(max(size) for size in sizes) >= PHOTOGRAPHS else SMALL_SIDE
    found = "images of several sizes are" if len(sizes) > 1 else f"images of {'×'.join(map(str, *sizes))} are"
    say(f"{root.name}: {found} brought to {side}×{side}; choose another size by --size HxW, or size=(height, width)")
    return side, side
