"""What a step on labels of pixels takes: FCN-32s on ResNet-50, two images of 192×320, 14 classes, one thread.

Each method in a process of its own, so that its peak memory is its own: `python -m bench segmentation`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from onedomain.data.domain import Domain
from onedomain.methods import method_class
from onedomain.methods.base import Setup
from onedomain.methods.sdg import SDG
from onedomain.networks import build_network
from onedomain.training.loop import peak_memory_mb

BATCH, SIZE, CLASSES = 2, (192, 320), 14
METHODS: dict[str, dict[str, Any]] = {
    "erm": {},
    "sdg": {"auto_encoder": "segmentation", "augmented_batch": 6, "domain_size": 4, "ascent_steps": 1},
    "uncertain-sdg": {"warm_up": 0},
}


def run() -> None:
    for name in METHODS:
        subprocess.run([sys.executable, "-m", __name__, name], check=True)


def measure(name: str) -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (8, *SIZE, 3), dtype=np.uint8)
    labels = rng.integers(0, CLASSES, (8, *SIZE)).astype(np.uint8)
    source = Domain("random", "train", images, labels, tuple(map(str, range(CLASSES))), void=0)
    method = method_class(name)(batch_size=BATCH, **METHODS[name])
    batch = source.batch(range(BATCH))
    network = build_network("fcn-32s", CLASSES, (*SIZE, 3))
    method.set_up(Setup(network, batch.images, torch.device("cpu"), source))
    parameters = (
        f"{method.network.parameter_count / 1e6:.1f} M parameters, {method.training_parameters / 1e6:.1f} M trained"
    )
    print(f"{name}, FCN-32s, {BATCH} images of {SIZE[0]}×{SIZE[1]}, {parameters}")
    if isinstance(method, SDG):
        measure_preparation(method)

    def step() -> None:
        method.network.module.train()
        method.step(batch, 1)

    report("a training step", step)


def measure_preparation(method: SDG) -> None:
    """What SDG does between steps, and its three domains."""
    wae = method.wae = method._new_wae(1)
    report("a step of V, 2 images", wae.step)
    images = method.source.batch(range(BATCH))
    report("an ascent step, 2 images (and z and V(x), once a domain)", lambda: method._climb(images))
    method.wae = None
    for _ in range(method.settings.domains):
        list(method.augmentation.make(lambda batch: batch.images, method.device))


def report(what: str, step: Callable[[], object], rounds: int = 2) -> None:
    step()
    begun, begun_cpu = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        step()
    seconds, cpu = (time.perf_counter() - begun) / rounds, (time.process_time() - begun_cpu) / rounds
    print(
        f"  {what}: {seconds:.1f} s ({cpu:.1f} s of CPU time); peak memory so far {peak_memory_mb():,} MB", flush=True
    )


if __name__ == "__main__":
    measure(sys.argv[1])
