"""Public images with one label each: from our prepared .npz file, else from the files their makers publish.

`prepare` downloads the published files (checked against their published SHA-256) into a folder `raw`, or takes those
that are there, and writes one .npz file with its own SHA-256 beside it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onedomain.data import formats
from onedomain.data.datasets.base import Dataset, Folder, Found, Progress, Row, note_if_fewer
from onedomain.data.domain import Domain
from onedomain.data.files import make_folder, os_errors_are_user_errors, read_file, write_atomically
from onedomain.data.formats import Arrays
from onedomain.data.image_files import to_rgb32
from onedomain.errors import UserError

MOST_BYTES = 2**16  # of a file with a checksum


class Form(NamedTuple):
    """One published form of one split: its files, and the reader that takes them."""

    read: Callable[..., Arrays]
    files: tuple[str, ...]
    called: str = ""  # in messages, where the files are many


@dataclass(frozen=True)
class Files(Found):
    """The files of one split, and the reader that takes them."""

    read: Callable[..., Arrays]


@dataclass(frozen=True, kw_only=True)
class Labelled(Dataset[Files]):
    """Small images with one label each, in splits of a known size. `home` is our prepared file."""

    shape: tuple[int, ...]  # of one image, as published
    counts: Mapping[str, int]
    needed: tuple[str, ...] = ("test",)  # the splits that benchmarks read
    classes: tuple[str, ...]
    class_called: str = "{}"  # in messages
    forms: Mapping[str, tuple[Form, ...]]  # per split; the first that is there is read
    places: tuple[str, ...]  # folders in which published files are looked for, in this order
    addresses: tuple[str, ...] = ()  # folders to download from: the first, then its mirrors
    sha256: Mapping[str, str] = field(default_factory=dict)  # of each file to download, as published

    def load(self, part: str, data_dir: Folder, start: int = 0, stop: int | None = None) -> Domain:
        """The images of a split from `start` to `stop`, 32×32×3 bytes, in their published order."""
        images, labels = self.read(part, data_dir)
        if len(labels) <= start:
            raise UserError(f"{self.name} ({part})", f"has {len(labels):,} images", f"more than the first {start:,}")
        published = self.counts[part]
        wanted = (published if stop is None else min(stop, published)) - start
        images, labels = images[start:stop], labels[start:stop]
        note = note_if_fewer(len(labels), wanted)
        return Domain(self.name, part, to_rgb32(images), labels, self.classes, note=note)

    def read(self, part: str, data_dir: Folder) -> Arrays:
        """Images and labels as published: neither resized nor coloured."""
        found = self.require(part, data_dir)
        images, labels = found.read(*found.paths)
        if images.shape[1:] != self.shape:
            size, published = ("×".join(map(str, shape)) for shape in (images.shape[1:], self.shape))
            raise UserError(str(found.paths[0]), f"images of {size} found", f"{published}, as {self.name} is published")
        return images, labels

    def _find(self, part: str, data_dir: Path) -> Files | None:
        prepared = data_dir / self.home
        if prepared.exists() and part in formats.npz_counts(prepared):
            return Files((prepared,), partial(formats.read_npz, split=part))
        for form in self.forms[part]:
            for place in self.places:
                paths = tuple(data_dir / place / file for file in form.files)
                if all(path.exists() for path in paths):
                    return Files(paths, form.read)
        return None

    def _looked_for(self, part: str) -> str:
        files = " or ".join(form.called or " + ".join(form.files) for form in self.forms[part])
        return f"neither in {self.home} nor as {files} in {', '.join(f'{place}/' for place in self.places)}"

    def _count(self, data_dir: Path, found: Mapping[str, Files], row: Row) -> None:
        prepared = data_dir / self.home
        if prepared.exists():
            row.counts |= formats.npz_counts(prepared)

    def _check(self, data_dir: Path, found: Mapping[str, Files], row: Row) -> None:
        for path in dict.fromkeys(path for files in found.values() for path in files.paths):
            check_sum(self.name, self.sha256, path)
        for split in found:
            labels = self.read(split, data_dir)[1]
            row.counts[split] = len(labels)
            empty = sorted(set(range(len(self.classes))) - set(labels.tolist()))
            if empty:
                names = ", ".join(self.classes[each] for each in empty)
                row.add(f"{split}: no image of {self.class_called.format(names)}", "broken")
        for split, published in self.counts.items():
            row.compare(split, published, "partial" if split in self.needed else "whole")

    def prepare(self, data_dir: Folder, tell: Progress) -> str:
        target = Path(data_dir) / self.home
        if target.exists():
            return f"{self.name}: already prepared, {target}"
        arrays: dict[str, Arrays] = {}
        for split in self.parts:
            files = self.find(split, data_dir) or self._fetch(split, target.parent / "raw", tell)
            if files:
                for path in files.paths:
                    check_sum(self.name, self.sha256, path)
                tell(f"reading {', '.join(path.name for path in files.paths)}", 0.0)
                arrays[split] = self.read(split, data_dir)
            elif split in self.needed:
                self.require(split, data_dir)
        tell(f"writing {target.name}", 0.0)
        save_prepared(target, arrays)
        counts = ", ".join(f"{len(labels):,} {split}" for split, (_, labels) in arrays.items())
        return f"{self.name}: prepared, {target} ({counts})"

    def _fetch(self, split: str, folder: Path, tell: Progress) -> Files | None:
        """Download the files of one split, if they have public addresses."""
        for form in self.forms[split]:
            if all(file in self.sha256 for file in form.files):
                for file in form.files:
                    download(self.name, self.addresses, self.sha256[file], folder / file, tell)
                return Files(tuple(folder / file for file in form.files), form.read)
        return None


def download(name: str, addresses: Sequence[str], sha256: str, target: Path, tell: Progress) -> None:
    """Fetch one file of a data set, from its first address that gives the file with the published checksum."""
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    reasons = []

    def fetch(address: str, file: str, _pooch: object) -> None:
        # identity: some servers would unpack a .gz on the way, and then no checksum holds
        with (
            requests.get(address, stream=True, timeout=30, headers={"Accept-Encoding": "identity"}) as answer,
            Path(file).open("wb") as output,
        ):
            answer.raise_for_status()
            size = int(answer.headers.get("content-length", 0))
            for chunk in answer.iter_content(1 << 16):
                output.write(chunk)
                tell(f"downloading {address}", min(1.0, output.tell() / size) if size else 0.0)

    for address in (folder + target.name for folder in addresses):
        with os_errors_are_user_errors(target):
            try:
                pooch.retrieve(address, f"sha256:{sha256}", target.name, target.parent, downloader=fetch)
                return
            except requests.HTTPError as error:
                reasons.append(f"{address} (HTTP {getattr(error.response, 'status_code', 'error')})")
            except requests.RequestException:  # an OSError too, but not one of the disk
                reasons.append(f"{address} (no connection)")
            except ValueError:
                reasons.append(f"{address} (what came has not the published SHA-256 {sha256})")
    help_yourself = f"put it at {target} yourself, then run: onedomain data prepare {name}"
    raise UserError(target.name, f"cannot be downloaded from {' or '.join(reasons)}; {help_yourself}")


def check_sum(name: str, published: Mapping[str, str], path: Path) -> None:
    """Compare a prepared file with the SHA-256 beside it, a published one with its published SHA-256."""
    import pooch

    beside = _sum_path(path)
    if path.suffix == ".npz" and beside.exists():
        wanted, origin = read_file(beside, MOST_BYTES).decode(errors="replace")[:64], f"in {beside.name}"
    elif path.name in published:
        wanted, origin = published[path.name], "as published"
    else:
        return
    with formats.decoding(path, "a file you may read"):
        digest = pooch.file_hash(str(path))
    if digest != wanted:
        again = f"delete it and run: onedomain data prepare {name}"
        raise UserError(str(path), f"its SHA-256 is {digest}, not {wanted!r} {origin}; {again}")


def _sum_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def save_prepared(target: Path, arrays: Mapping[str, Arrays]) -> None:
    """Write the prepared file and, before it, its checksum: where the data is, its checksum is too."""
    members: dict[str, Any] = {}
    for split, (images, labels) in arrays.items():
        members |= {f"x_{split}": images, f"y_{split}": labels}
    content = io.BytesIO()
    np.savez_compressed(content, **members)
    digest = hashlib.sha256(content.getbuffer()).hexdigest()
    make_folder(target.parent)
    write_atomically(_sum_path(target), f"{digest}  {target.name}\n")  # as `sha256sum --check` reads it
    write_atomically(target, content.getvalue())
