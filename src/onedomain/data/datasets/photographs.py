"""Photographs in one folder per domain and class: Office-Caltech-10, and PACS with its official lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onedomain.data.datasets.base import Folder, Found, InOnePlace, Row, note_if_fewer
from onedomain.data.domain import Domain
from onedomain.data.files_on_demand import read_images
from onedomain.data.formats import decoding
from onedomain.data.image_files import find_images
from onedomain.errors import UserError

SIDE = 160  # pixels that images are brought to, unless a data set has its own
HELD_OUT_EVERY = 20  # of a source without published lists, one image in so many is never trained on


@dataclass(frozen=True, kw_only=True)
class PhotographFolders(InOnePlace):
    """`home/DOMAIN/CLASS/*.jpg`."""

    counts: Mapping[str, int]
    classes: tuple[str, ...]
    side: int = SIDE

    def load(self, part: str, data_dir: Folder) -> Domain:
        files, labels = self.files(part, data_dir)
        return self._decoded(part, "all", files, labels)

    def source(self, part: str, data_dir: Folder, held_out: bool = False) -> Domain:
        """A domain to train on, without some images of each class; or these."""
        files, labels = self.files(part, data_dir)
        kept = np.arange(len(files)) % HELD_OUT_EVERY == HELD_OUT_EVERY // 2
        chosen = np.flatnonzero(kept == held_out)
        return self._decoded(part, "held out" if held_out else "train", [files[i] for i in chosen], labels[chosen])

    def files(self, part: str, data_dir: Folder) -> tuple[list[Path], np.ndarray]:
        """Every image of a domain with its class, by class and name."""
        folder = self.path(part, data_dir)
        classes = [(label, folder / name) for label, name in enumerate(self.classes) if (folder / name).is_dir()]
        found = [(file, label) for label, inside in classes for file in find_images(inside, needed=False)]
        if not found:
            raise UserError(str(folder), "holds no image", f"a folder of images per class: {', '.join(self.classes)}")
        return [file for file, _ in found], np.array([label for _, label in found])

    def _decoded(self, part: str, split: str, files: list[Path], labels: np.ndarray) -> Domain:
        images = read_images(files, size=(self.side, self.side), channels=3)
        note = note_if_fewer(len(files), self.counts[part]) if split == "all" else ""
        return Domain(part, split, images, labels, self.classes, note=note)

    def _places(self, part: str) -> tuple[str, ...]:
        return (f"{self.home}/{part}",)

    def _count(self, data_dir: Path, found: Mapping[str, Found], row: Row) -> None:
        row.counts |= {part: len(self.files(part, data_dir)[0]) for part in found}


@dataclass(frozen=True, kw_only=True)
class Listed(PhotographFolders):
    """The same, with lists of what to train on and what to validate on: lines of `DOMAIN/CLASS/FILE NUMBER`."""

    lists: str  # where they are, with {part} and {split} for their names

    def source(self, part: str, data_dir: Folder, held_out: bool = False) -> Domain:
        path = Path(data_dir) / self.lists.format(part=part, split="crossval" if held_out else "train")
        with decoding(path, "a list of images, as published"):
            lines = path.read_text(encoding="utf-8").splitlines()
        folder = self.path(part, data_dir)
        files, labels = [], []
        for number, line in enumerate(filter(None, lines), start=1):
            name, _, label = line.rpartition(" ")
            file = folder.parent / name
            if label not in {str(each + 1) for each in range(len(self.classes))} or not file.is_file():
                given = f"line {number} is {line[:80]!r}"
                raise UserError(str(path), given, f"an image of {folder.parent} and its class from 1")
            files.append(file)
            labels.append(int(label) - 1)
        return self._decoded(part, "held out" if held_out else "train", files, np.array(labels))


OFFICE_CALTECH = PhotographFolders(
    name="office-caltech",
    what="photographs of ten things in four domains",
    get="put Office-Caltech-10 into office-caltech/: one folder per domain, and in it one per class",
    home="office-caltech",
    counts={"amazon": 958, "caltech10": 1123, "dslr": 157, "webcam": 295},
    classes=(
        "backpack",
        "bike",
        "calculator",
        "headphones",
        "keyboard",
        "laptop",
        "monitor",
        "mouse",
        "mug",
        "projector",
    ),
)
PACS = Listed(
    name="pacs",
    what="photographs, art, cartoons and sketches of seven things",
    get="put the official images and lists of PACS into pacs/: kfold/DOMAIN/CLASS/, splits/DOMAIN_train_kfold.txt",
    home="pacs/kfold",
    counts={"photo": 1670, "art_painting": 2048, "cartoon": 2344, "sketch": 3929},
    classes=("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    side=224,
    lists="pacs/splits/{part}_{split}_kfold.txt",
)
PHOTOGRAPHS = (OFFICE_CALTECH, PACS)
