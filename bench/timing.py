"""Timing two versions of one step fairly."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def compare(ours: Callable[[], object], textbook: Callable[[], object], rounds: int = 15) -> tuple[float, float]:
    """Median seconds of each, their calls taking turns, so that whatever else the machine does hits both alike."""
    for _ in range(3):
        ours()
        textbook()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for kept, step in zip(times, (ours, textbook), strict=True):
            begun = time.perf_counter()
            step()
            kept.append(time.perf_counter() - begun)
    return median(times[0]), median(times[1])
