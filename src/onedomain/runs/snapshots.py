"""Moments of a training, seen on a fixed sample of the source: one small file each, for figures over time.

The method decides what a snapshot holds (`Method.snapshot`). Taking one changes no weight and no random number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from onedomain.data.arrays import SUFFIX, load_arrays, not_ours
from onedomain.runs.layout import SNAPSHOTS


@dataclass(frozen=True)
class Snapshot:
    """A method's arrays on the sample after `step` steps, by name."""

    step: int
    arrays: dict[str, np.ndarray] = field(repr=False)


def read_snapshots(folder: Path) -> list[Snapshot]:
    """All snapshots of a run folder, the first moment first."""
    snapshots = []
    for path in sorted((folder / SNAPSHOTS).glob(f"step-*{SUFFIX}")):
        about, arrays = load_arrays(path)
        try:
            snapshots.append(Snapshot(int(about["step"]), arrays))
        except (KeyError, TypeError, ValueError) as error:
            raise not_ours(path, error) from None
    return snapshots
