"""`onedomain data list | check | prepare` for CIFAR-10 and CIFAR-10-C.

`prepare cifar10` fetches the binary archive, or takes what lies there, and writes one .npz file. `prepare cifar10-c`
makes the corrupted sets anew from the test images; the official files are taken where they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.data.datasets import cifar, cifar_c
from onedomain.data.datasets.cifar_files import BINARY, CLASSES
from onedomain.data.datasets.fetch import Entry, Progress, Row, check_sum, download, save_prepared
from onedomain.errors import UserError

# SHA-256 of the archives: TensorFlow Datasets (url_checksums/cifar10.txt) and torchvision's prototype data sets.
CATALOGUE: Mapping[str, Entry] = {
    "cifar10": Entry(
        "32×32 photographs of ten kinds, the source of cifar10-c",
        ("https://www.cs.toronto.edu/~kriz/",),
        {
            "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        },
    ),
    "cifar10-c": Entry("its test images under 19 corruptions × 5 severities"),
    "cifar10-c-lite": Entry(f"the same of the first {cifar.LITE_TARGET:,} test images"),
}
_IMAGES = {"cifar10-c": None, "cifar10-c-lite": cifar.LITE_TARGET}  # test images of a set; None for all
_GET = {
    "cifar10": "run: onedomain data prepare cifar10",
    "cifar10-c": "put the official .npy files (zenodo.org/records/2535967) into cifar10/CIFAR-10-C/, or make them anew "
    "from the test images: onedomain data prepare cifar10-c",
    "cifar10-c-lite": "run: onedomain data prepare cifar10-c-lite",
}


def listed(name: str, entry: Entry, data_dir: Path) -> Row:
    """What is there; no image is read."""
    try:
        if name == "cifar10":
            found = {split: cifar.find(split, data_dir) for split in cifar.COUNTS}
            paths = dict.fromkeys(str(path) for files in found.values() if files for path in files.paths)
            if paths:
                return Row(name, entry.what, "present", ", ".join(paths), {})
        else:
            places = _places(name, data_dir)
            if places:
                problems = _left_out(places)
                return Row(name, entry.what, "present", _where(places), _counts(places), problems)
    except UserError as error:
        return Row(name, entry.what, "broken", str(data_dir), {}, (str(error),))
    return Row(name, entry.what, "missing", _GET[name], {})


def checked(name: str, entry: Entry, data_dir: Path) -> Row:
    """Whether what is there is whole, and as published."""
    return _checked_source(entry, data_dir) if name == "cifar10" else _checked_set(name, entry, data_dir)


def _checked_source(entry: Entry, data_dir: Path) -> Row:
    counts: dict[str, int] = {}
    problems: list[str] = []
    where: dict[str, None] = {}
    try:
        for split, published in cifar.COUNTS.items():
            found = cifar.find(split, data_dir)
            if found:
                for path in found.paths:
                    where[str(path)] = None
                    check_sum("cifar10", entry, path)
                labels = cifar.read(split, data_dir)[1]
                counts[split] = len(labels)
                empty = [CLASSES[each] for each in sorted(set(range(len(CLASSES))) - set(labels.tolist()))]
                if empty:
                    return Row(
                        "cifar10",
                        entry.what,
                        "broken",
                        ", ".join(where),
                        counts,
                        (f"{split}: no image of {', '.join(empty)}",),
                    )
            if counts.get(split, 0) != published:
                problems.append(f"{split}: {counts.get(split, 0):,} of {published:,} images")
    except UserError as error:
        return Row("cifar10", entry.what, "broken", ", ".join(where), counts, (str(error),))
    if not counts:
        return Row("cifar10", entry.what, "missing", _GET["cifar10"], {})
    state = "partial" if problems else "whole"
    return Row("cifar10", entry.what, state, ", ".join(where), counts, tuple(problems))


def _checked_set(name: str, entry: Entry, data_dir: Path) -> Row:
    """Shapes, labels, and from the clean images whether rows or severities were mixed up."""
    problems: list[str] = []
    try:
        places = _places(name, data_dir)
        if not places:
            return Row(name, entry.what, "missing", _GET[name], {})
        where = _where(places)
        clean, labels = cifar.read("test", data_dir) if cifar.find("test", data_dir) else (None, None)
        for kind, found in places.items():
            cifar_c.read_labels(found, labels)
            cifar_c.read_pixels(found, kind)
            mixed = None if clean is None else cifar_c.out_of_order(found, kind, clean)
            if mixed:
                problems.append(mixed)
    except UserError as error:
        return Row(name, entry.what, "broken", str(data_dir), {}, (str(error),))
    if problems:
        return Row(name, entry.what, "broken", where, _counts(places), tuple(problems))
    wanted = _IMAGES[name] or cifar.COUNTS["test"]
    problems += _left_out(places)
    problems += [f"{count:,} of {wanted:,} test images" for count in _counts(places).values() if count < wanted]
    if clean is None:
        problems.append("the clean test images are not there to compare with")
    return Row(name, entry.what, "partial" if problems else "whole", where, _counts(places), tuple(problems))


def prepare(name: str, entry: Entry, data_dir: Path, tell: Progress) -> str:
    """Make the prepared files; returns the line that tells what was done."""
    return _prepare_source(entry, data_dir, tell) if name == "cifar10" else _prepare_set(name, data_dir, tell)


def _prepare_source(entry: Entry, data_dir: Path, tell: Progress) -> str:
    target = data_dir / cifar.PREPARED
    if target.exists():
        return f"cifar10: already prepared, {target}"
    if any(cifar.find(split, data_dir) is None for split in cifar.COUNTS):
        download("cifar10", entry, target.parent / "raw" / BINARY.archive, tell)
    arrays = {}
    for split in cifar.COUNTS:
        found = cifar.find(split, data_dir)
        for path in found.paths if found else ():
            check_sum("cifar10", entry, path)
        tell(f"reading the {split} images", 0.0)
        arrays[split] = cifar.read(split, data_dir)
    tell(f"writing {target.name}", 0.0)
    save_prepared(target, arrays)
    counts = ", ".join(f"{len(labels):,} {split}" for split, (_, labels) in arrays.items())
    return f"cifar10: prepared, {target} ({counts})"


def _prepare_set(name: str, data_dir: Path, tell: Progress) -> str:
    places = _places(name, data_dir)
    if len(places) == len(KINDS):
        return f"{name}: already there, {_where(places)}"
    from onedomain.data.corruptions.regenerate import regenerate

    folder = data_dir / (cifar_c.REGENERATED if name == "cifar10-c" else cifar_c.REGENERATED_LITE)
    count, left_out = regenerate(folder, data_dir, _IMAGES[name], tell)
    made = f"{len(KINDS) - len(left_out)} corruptions × {len(SEVERITIES)} severities of {count:,} test images"
    return "; ".join([f"{name}: regenerated, {folder} ({made})", *(f"left out: {reason}" for reason in left_out)])


def _places(name: str, data_dir: Path) -> dict[str, cifar_c.Found]:
    found = {kind: cifar_c.find(kind, data_dir, _IMAGES[name]) for kind in KINDS}
    return {kind: place for kind, place in found.items() if place}


def _where(places: Mapping[str, cifar_c.Found]) -> str:
    folders = {found.folder: found.regenerated for found in places.values()}
    return ", ".join(f"{folder}{' (regenerated)' * regenerated}" for folder, regenerated in folders.items())


def _counts(places: Mapping[str, cifar_c.Found]) -> dict[str, int]:
    """Test images a severity; of several folders, the fewest."""
    return {"test": min(found.images for found in places.values())}


def _left_out(places: Mapping[str, cifar_c.Found]) -> tuple[str, ...]:
    missing = [kind for kind in KINDS if kind not in places]
    return (f"missing: {', '.join(missing)}",) if missing else ()
