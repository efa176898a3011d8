"""CIFAR-10-C: the test images of CIFAR-10 under 19 corruptions in five severities.

From the official files, `<corruption>.npy` and `labels.npy`, or from files of the same form that `onedomain data
prepare cifar10-c` makes; the latter are called "regenerated" wherever they appear. Images are memory-mapped: 95
domains cost no memory until they are scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onedomain.data.corruptions import KINDS, SEVERITIES, Corruption
from onedomain.data.datasets.base import Dataset, Folder, Progress, Report, of_images
from onedomain.data.datasets.cifar import CIFAR10, LITE_TARGET
from onedomain.data.datasets.cifar_c_files import (
    LABELS,
    Corrupted,
    file_name,
    found_in,
    out_of_order,
    read_labels,
    read_pixels,
)
from onedomain.data.datasets.cifar_files import CLASSES
from onedomain.data.datasets.regenerate import regenerate

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

OFFICIAL = ("cifar10/CIFAR-10-C", "CIFAR-10-C")
REGENERATED = "cifar10/CIFAR-10-C-regenerated"
REGENERATED_LITE = "cifar10/CIFAR-10-C-lite-regenerated"
REGENERATED_NOTE = "regenerated"


PARTS = {f"{kind}-{severity}": Corruption(kind, severity) for kind in KINDS for severity in SEVERITIES}


@dataclass(frozen=True, kw_only=True)
class CIFAR10C(Dataset[Corrupted]):
    """One domain for each corruption at each severity. `home` is the folder of the files that we make."""

    images: int | None  # only the first of the test images; None for all
    places: tuple[str, ...]  # folders in which the files are looked for: the official ones, then ours

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(PARTS)

    @property
    def wanted(self) -> int:
        return self.images or CIFAR10.counts["test"]

    def load(self, part: str, data_dir: Folder) -> Domain:
        from onedomain.data.domain import Domain

        found = self.require(part, data_dir)
        kind, severity = PARTS[part]
        labels = read_labels(found, _clean_labels(Path(data_dir)))
        pixels = read_pixels(found, kind)
        start, count = (severity - 1) * found.images, min(self.images or found.images, found.images)
        notes = [REGENERATED_NOTE] * found.regenerated + [of_images(count, self.wanted)] * (count != self.wanted)
        return Domain(
            part,
            "test",
            pixels[start : start + count],
            labels[:count],
            CLASSES,
            note=", ".join(notes),
            corruption=PARTS[part],
        )

    def _find(self, part: str, data_dir: Path) -> Corrupted | None:
        for place in self.places:
            folder = data_dir / place
            if (folder / file_name(PARTS[part].kind)).is_file() and (folder / LABELS).is_file():
                return found_in(folder)
        return None

    def _looked_for(self, part: str) -> str:
        looked = ", ".join(f"{place}/" for place in self.places)
        return f"{file_name(PARTS[part].kind)} and {LABELS} are not together in any of {looked}"

    def _title(self, part: str) -> str:
        return f"domain '{PARTS[part].kind}'"  # one message for the five severities, which lie in one file

    def _where(self, data_dir: Path, found: Mapping[str, Corrupted]) -> str:
        folders = {files.folder: files.regenerated for files in found.values()}
        return ", ".join(f"{folder}{' (regenerated)' * regenerated}" for folder, regenerated in folders.items())

    def _count(self, data_dir: Path, found: Mapping[str, Corrupted], report: Report) -> None:
        report.counts["test"] = min(files.images for files in found.values())
        missing = [kind for kind in KINDS if kind not in _by_kind(found)]
        if missing:
            report.add(f"missing: {', '.join(missing)}")

    def _check(self, data_dir: Path, found: Mapping[str, Corrupted], report: Report) -> None:
        """Shapes, labels, and from the clean images whether rows or severities were mixed up."""
        clean, labels = CIFAR10.read("test", data_dir) if CIFAR10.find("test", data_dir) else (None, None)
        for kind, files in _by_kind(found).items():
            read_labels(files, labels)
            read_pixels(files, kind)
            mixed = None if clean is None else out_of_order(files, kind, clean)
            if mixed:
                report.add(mixed, "broken")
        self._count(data_dir, found, report)
        if report.counts["test"] < self.wanted:
            report.add(f"{report.counts['test']:,} of {self.wanted:,} test images")
        if clean is None:
            report.add("the clean test images are not there to compare with")

    def prepare(self, data_dir: Folder, tell: Progress) -> str:
        """Make the corrupted images anew from the test images; official files are used where they are."""
        found = self.find_all(data_dir)
        if len(found) == len(PARTS):
            return f"{self.name}: already there, {self._where(Path(data_dir), found)}"
        folder = Path(data_dir) / self.home
        count, left_out = regenerate(folder, Path(data_dir), self.images, tell)
        made = f"{len(KINDS) - len(left_out)} corruptions × {len(SEVERITIES)} severities of {count:,} test images"
        return "; ".join([f"{self.name}: regenerated, {folder} ({made})", *(f"left out: {why}" for why in left_out)])


CIFAR10_C = CIFAR10C(
    name="cifar10-c",
    what="its test images under 19 corruptions × 5 severities",
    get="put the official .npy files (zenodo.org/records/2535967) into cifar10/CIFAR-10-C/, or make them anew "
    "from the test images: onedomain data prepare cifar10-c",
    home=REGENERATED,
    images=None,
    places=(*OFFICIAL, REGENERATED),
)
CIFAR10_C_LITE = CIFAR10C(
    name="cifar10-c-lite",
    what=f"the same of the first {LITE_TARGET:,} test images",
    get="run: onedomain data prepare cifar10-c-lite",
    home=REGENERATED_LITE,
    images=LITE_TARGET,
    places=(*OFFICIAL, REGENERATED, REGENERATED_LITE),
)


def _by_kind(found: Mapping[str, Corrupted]) -> dict[str, Corrupted]:
    return {PARTS[part].kind: files for part, files in found.items()}


def _clean_labels(data_dir: Path) -> np.ndarray | None:
    """The labels of the clean test images, if these are there."""
    found = CIFAR10.find("test", data_dir)
    if found is None:
        return None
    return _read_labels_once(str(data_dir), tuple((str(path), path.stat().st_mtime_ns) for path in found.paths))


@lru_cache(maxsize=2)  # read once, not for each of 95 domains; files that change are read again
def _read_labels_once(data_dir: str, files: tuple[tuple[str, int], ...]) -> np.ndarray:
    return CIFAR10.read("test", data_dir)[1]
