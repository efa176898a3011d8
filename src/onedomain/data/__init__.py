"""Data: the `Domain` contract, the library's own domains, and the user's."""

from __future__ import annotations

import os
from pathlib import Path

from onedomain.errors import UserError


def data_folder(given: str | Path | None = None, *, to_write: bool = False) -> Path:
    """Where data sets lie: the folder given, else ONEDOMAIN_DATA, else the user's cache folder."""
    named = str(given) if given else os.environ.get("ONEDOMAIN_DATA")
    if named:
        if not (Path(named).is_dir() or to_write):
            raise UserError("--data" if given else "ONEDOMAIN_DATA", f"{named!r} is not a folder", "an existing folder")
        return Path(named)
    import pooch

    return Path(pooch.os_cache("onedomain")) / "data"
