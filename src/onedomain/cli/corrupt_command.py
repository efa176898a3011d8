"""`onedomain corrupt`. Apart from the other commands: it needs no torch, and neither do its processes."""

from __future__ import annotations

import sys
from pathlib import Path

from onedomain.data import data_folder
from onedomain.data.corruptions import SETS, check_kind, makeable
from onedomain.data.corruptions.folder import corrupt_folder, parse_severities
from onedomain.errors import UserError, unknown


def corrupt(
    folder: str, kind: str, severity: str, out: str, seed: int, constants: str | None, data: str | None
) -> None:
    overlays = data_folder(data) / "frost"
    makes, left_out = makeable(overlays)
    kinds = makes if kind == "all" else [check_kind(kind, field="--kind")]
    if not set(kinds) <= set(makes):
        raise left_out[0]
    if constants is not None and constants not in SETS:
        raise unknown("--constants", constants, SETS)
    if not 0 <= seed < 2**32:
        raise UserError("--seed", f"got {seed}", "a whole number from 0 to 4294967295")
    used = corrupt_folder(
        Path(folder),
        kinds,
        parse_severities(severity),
        Path(out),
        overlays=overlays,
        seed=seed,
        constants=constants,
    )
    made = ", ".join(f"{count:,} with the constants of {name}" for name, count in used.items())
    print(f"{out}: {f'{sum(used.values()):,} images, {made}' if used else 'all images are there already'}")
    for reason in left_out if kind == "all" else ():
        print(f"left out: {reason}", file=sys.stderr)
