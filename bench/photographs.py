"""Photographs decoded and brought to 160×160, in shuffled batches, against a DataLoader with a worker per core."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image

from onedomain.data import files_on_demand
from onedomain.data.domain import Domain
from onedomain.data.files_on_demand import read_images

COUNT, BATCH, SIDE, ROUNDS = 512, 32, 160, 5


class Plain(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """As tutorials have it."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        image = Image.open(self.files[place]).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255, 0


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = _photographs(Path(folder))
        files_on_demand.IN_MEMORY = 0
        images = read_images(files, size=(SIDE, SIDE), channels=3)
        domain = Domain("random", "train", images, np.arange(COUNT) % 2, ("a", "b"))
        workers = os.cpu_count() or 1
        loader = torch.utils.data.DataLoader(Plain(files), BATCH, shuffle=True, num_workers=workers)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for kept, ours in zip(times, (True, False), strict=True):
                begun = time.perf_counter()
                _ = _epoch(domain) if ours else sum(len(batch) for batch in loader)
                kept.append(time.perf_counter() - begun)
        fast, slow = (COUNT / median(each) for each in times)
        print(
            f"photographs, 640×480 JPEG to {SIDE}×{SIDE}, {workers} cores: {fast:.0f} images/s; DataLoader {slow:.0f} "
            f"images/s; ratio {fast / slow:.2f}"
        )


def _epoch(domain: Domain) -> int:
    order = np.random.default_rng(0).permutation(COUNT)
    batches = np.split(order, COUNT // BATCH)
    for here, ahead in zip(batches, [*batches[1:], batches[-1][:0]], strict=True):
        domain.ask(here)
        domain.ask(ahead)
        domain.batch(here)
    return COUNT


def _photographs(folder: Path) -> list[Path]:
    """Smooth noise: as easy to compress as photographs."""
    rng, files = np.random.default_rng(0), [folder / f"{number}.jpg" for number in range(COUNT)]
    for file in files:
        coarse = Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8))
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(file, quality=90)
    return files
