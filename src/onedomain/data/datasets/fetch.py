"""Getting files: downloads with checksums, and prepared files with theirs."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data import formats
from onedomain.data.datasets.base import Progress
from onedomain.data.files import make_folder, os_errors_are_user_errors, write_atomically
from onedomain.data.formats import Arrays
from onedomain.errors import UserError


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
        wanted, origin = beside.read_text(encoding="utf-8", errors="replace")[:64], f"in {beside.name}"
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
