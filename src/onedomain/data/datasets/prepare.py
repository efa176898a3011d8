"""What data there is, whether it is whole, and how it is fetched: `onedomain data list | check | prepare`.

`prepare` downloads the published files (checked against their published SHA-256) into `digits/raw/`, or takes
those that lie there, and writes one .npz file a data set, with its own SHA-256 beside it. What is CIFAR-10 or made of
it stands in `prepare_cifar`, what has labels of pixels in `dense_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from onedomain.data import formats
from onedomain.data.datasets import dense_sets, digits, prepare_cifar
from onedomain.data.datasets.fetch import Entry, Folder, Progress, Row, check_sum, download, save_prepared
from onedomain.data.formats import Arrays
from onedomain.errors import UserError, unknown

__all__ = ["CATALOGUE", "Entry", "Row", "check_data", "check_name", "list_data", "prepare"]

# SHA-256 of MNIST and SVHN: TensorFlow Datasets (url_checksums/mnist.txt, svhn_cropped.txt), and again in
# torchvision's prototype data sets, from which that of USPS comes. MNIST-M and SYN are published without any.
CATALOGUE: Mapping[str, Entry] = {
    "mnist": Entry(
        "handwritten digits, the source",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "mnist-m": Entry("MNIST digits blended with photographs"),
    "svhn": Entry(
        "house numbers from Street View",
        ("http://ufldl.stanford.edu/housenumbers/",),
        {
            "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        },
    ),
    "syn": Entry("digits rendered from fonts (SynthDigits)"),
    "usps": Entry(
        "digits from envelopes of the US mail",
        ("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/",),
        {
            "usps.bz2": "3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f",
            "usps.t.bz2": "a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e",
        },
    ),
    **prepare_cifar.CATALOGUE,
    **dense_sets.CATALOGUE,
}


def list_data(data_dir: Folder) -> list[Row]:
    """What is there. Quick: of a prepared file only the labels are read, of a published one nothing."""
    return [_listed(name, data_dir) for name in CATALOGUE]


def _listed(name: str, data_dir: Folder) -> Row:
    if name in prepare_cifar.CATALOGUE:
        return prepare_cifar.listed(name, CATALOGUE[name], Path(data_dir))
    if name in dense_sets.CATALOGUE:
        return dense_sets.listed(name, data_dir)
    what, prepared = CATALOGUE[name].what, digits.prepared_path(name, data_dir)
    try:
        counts = formats.npz_counts(prepared) if prepared.exists() else {}
        found = _found(name, data_dir)
    except UserError as error:
        return Row(name, what, "broken", str(prepared), {}, (str(error),))
    if not found:
        return Row(name, what, "missing", digits.how_to_get(name), {})
    return Row(name, what, "present", _where(found), counts)


def check_data(data_dir: Folder, names: Iterable[str] | None = None) -> list[Row]:
    """Whether what is there is whole: every image is read, counted and compared with what is published."""
    return [_checked(name, data_dir) for name in [check_name(name) for name in names or ()] or CATALOGUE]


def _checked(name: str, data_dir: Folder) -> Row:
    if name in prepare_cifar.CATALOGUE:
        return prepare_cifar.checked(name, CATALOGUE[name], Path(data_dir))
    if name in dense_sets.CATALOGUE:
        return dense_sets.checked(name, data_dir)
    what, published, needed = CATALOGUE[name].what, digits.SETS[name].counts, digits.SETS[name].needed
    where, counts, problems = str(digits.prepared_path(name, data_dir)), {}, []
    try:
        found = _found(name, data_dir)
        if not found:
            return Row(name, what, "missing", digits.how_to_get(name), {})
        where = _where(found)
        for path in dict.fromkeys(path for files in found.values() for path in files.paths):
            check_sum(name, CATALOGUE[name], path)
        for split in found:
            labels = digits.read(name, split, data_dir)[1]
            counts[split] = len(labels)
            empty = sorted(set(range(10)) - set(labels.tolist()))
            if empty:
                problems.append(f"{split}: no image of digit {', '.join(map(str, empty))}")
    except UserError as error:
        return Row(name, what, "broken", where, counts, (str(error),))
    state = "broken" if problems else "whole"
    for split, count in published.items():
        if counts.get(split, 0) != count:
            problems.append(f"{split}: {counts.get(split, 0):,} of {count:,} images")
            if split in needed and state == "whole":
                state = "partial"
    return Row(name, what, state, where, counts, tuple(problems))


def prepare(name: str, data_dir: Folder, progress: Progress | None = None) -> str:
    """Fetch one data set and write its prepared file; returns the line that tells what was done."""
    tell = progress or (lambda _text, _fraction: None)
    if check_name(name) in dense_sets.CATALOGUE:
        raise UserError(name, "is read as it is published, and has no direct public address", dense_sets.GET[name])
    if name in prepare_cifar.CATALOGUE:
        return prepare_cifar.prepare(name, CATALOGUE[name], Path(data_dir), tell)
    target = digits.prepared_path(name, data_dir)
    if target.exists():
        return f"{name}: already prepared, {target}"
    arrays: dict[str, Arrays] = {}
    for split in digits.SPLITS:
        files = digits.find(name, split, data_dir) or _fetch(name, split, Path(data_dir), tell)
        if files:
            for path in files.paths:
                check_sum(name, CATALOGUE[name], path)
            tell(f"reading {', '.join(path.name for path in files.paths)}", 0.0)
            arrays[split] = digits.read(name, split, data_dir)
        elif split in digits.SETS[name].needed:
            raise digits.MissingData(name, split, data_dir)
    tell(f"writing {target.name}", 0.0)
    save_prepared(target, arrays)
    counts = ", ".join(f"{len(labels):,} {split}" for split, (_, labels) in arrays.items())
    return f"{name}: prepared, {target} ({counts})"


def check_name(name: str) -> str:
    if name not in CATALOGUE:
        raise unknown("data", name, CATALOGUE)
    return name


def _found(name: str, data_dir: Folder) -> dict[str, digits.Found]:
    places = {split: digits.find(name, split, data_dir) for split in digits.SPLITS}
    return {split: place for split, place in places.items() if place}


def _where(found: Mapping[str, digits.Found]) -> str:
    return ", ".join(dict.fromkeys(str(path) for files in found.values() for path in files.paths))


def _fetch(name: str, split: str, data_dir: Path, tell: Progress) -> digits.Found | None:
    """Download the files of one split, if they have public addresses."""
    for form in digits.SETS[name].official[split]:
        if all(file in CATALOGUE[name].sha256 for file in form.files):
            for file in form.files:
                download(name, CATALOGUE[name], data_dir / "digits" / "raw" / file, tell)
            return digits.find(name, split, data_dir)
    return None
