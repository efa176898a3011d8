"""`--track tensorboard`: what the journal writes, and samples of augmented domains, to look at during training."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onedomain.errors import UserError, unknown
from onedomain.runs.samples import mosaic, read_samples

TRACKERS = ("tensorboard",)
FOLDER = "tensorboard"


def check_tracker(track: str | None, has_folder: bool) -> None:
    """Refuse what cannot be tracked with, before anything is trained."""
    if track is None:
        return
    if track not in TRACKERS:
        raise unknown("track", str(track), TRACKERS)
    if importlib.util.find_spec("tensorboard") is None:
        raise UserError("track", "tensorboard is not installed", "pip install tensorboard")
    if not has_folder:
        raise UserError("track", "given for a run without a folder", "with out=")


class Untracked:
    """Tracks nothing."""

    def row(self, row: Mapping[str, Any]) -> None:
        """Take a row of metrics.jsonl."""

    def samples(self, step: int) -> None:
        """Look for augmented domains that were made before this step."""


class TensorBoard(Untracked):
    """Writes into the run folder's `tensorboard`.

    A resumed run goes on after the steps that are kept: what a killed one logged beyond them is purged, and logged
    again. One that was not tracked before gets what its journal has.
    """

    def __init__(self, folder: Path, start: int, rows: Sequence[Mapping[str, Any]]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        self.shown: set[str] = set()
        before = (folder / FOLDER).is_dir() and any((folder / FOLDER).iterdir())
        if before:
            _wait_for_a_later_name(folder / FOLDER)
        # Its methods have no types.
        self.writer: Any = SummaryWriter(str(folder / FOLDER), purge_step=start + 1 if before else None)
        for row in () if before else rows:
            self.row(row)
        if start > 0:
            self.samples(start)  # also those that will be made again: they will be the same

    def row(self, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if name not in ("step", "domain"):
                tag = f"{name}/{row['domain']}" if "domain" in row else f"train/{name}"
                self.writer.add_scalar(tag, value, row["step"])
        self.writer.flush()  # a kill loses nothing, and a browser shows it at once

    def samples(self, step: int) -> None:
        for sample in read_samples(self.folder):
            if sample.domain not in self.shown:
                self.shown.add(sample.domain)
                self.writer.add_image(f"augmented/{sample.domain}", mosaic(sample), step, dataformats="HWC")
        self.writer.flush()


def _wait_for_a_later_name(folder: Path) -> None:
    """Files are read in the order of their names, which carry the second they were begun in: each needs its own."""
    last = max((int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*")), default=0)
    while int(time.time()) == last:
        time.sleep(0.05)


@contextmanager
def tracking(
    track: str | None, folder: Path | None, start: int, rows: Sequence[Mapping[str, Any]]
) -> Iterator[Untracked]:
    """What to tell of a training that goes on after `start` steps and has logged `rows`."""
    if track is None or folder is None:
        yield Untracked()
        return
    board = TensorBoard(folder, start, rows)
    try:
        yield board
    finally:
        board.writer.close()
