"""A step of two processes together against one of one process alone, on one thread and on two: LeNet, batch 64.

They take turns, so that whatever else the machine does hits all alike. What they wait for is the mean of the gradients.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from onedomain.data.domain import Domain
from onedomain.methods.base import Method, Setup
from onedomain.methods.erm import ERM
from onedomain.methods.sdg import SDG
from onedomain.networks import build_network
from onedomain.networks.distributed import average, wait

BATCH, DOMAINS, PROCESSES, ROUNDS = 64, 3, 2, 12


def run() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe() for _ in range(PROCESSES)]
    workers = [context.Process(target=work, args=(rank, ends[rank][1]), daemon=True) for rank in range(PROCESSES)]
    for worker in workers:
        worker.start()

    def together(name: str) -> float:
        for end, _ in ends:
            end.send(name)
        return max(end.recv() for end, _ in ends)

    alone = steps()
    for name, step in alone.items():
        times: dict[str, list[float]] = {"1 thread": [], "2 threads": [], "together": [], "averaging": []}
        for _ in range(ROUNDS):
            for threads in (1, PROCESSES):
                torch.set_num_threads(threads)
                times[f"{threads} thread{'s' * (threads > 1)}"].append(timed(step))
            times["together"].append(together(name))
            times["averaging"].append(together("averaging"))
        one, two, both, mean = (1e3 * median(each[2:]) for each in times.values())
        print(
            f"{name}, LeNet, batch {BATCH}: {PROCESSES} processes {both:.0f} ms; one on 1 thread {one:.0f} ms, ratio "
            f"{one / both:.2f}; one on 2 threads {two:.0f} ms, ratio {two / both:.2f}; gradients averaged {mean:.0f} ms"
        )
    torch.set_num_threads(1)
    for (end, _), worker in zip(ends, workers, strict=True):
        end.send(None)
        worker.join()


def work(rank: int, end: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    known = steps()
    gradients = [
        torch.rand_like(parameter) for parameter in build_network("lenet", 10, (32, 32, 3)).module.parameters()
    ]
    known["averaging"] = lambda: average(gradients)
    while name := end.recv():
        wait()
        end.send(timed(known[name]))
    dist.destroy_process_group()


def timed(step: Callable[[], object]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def steps() -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (1000, 32, 32, 3), dtype=np.uint8)
    source = Domain("random", "train", images, rng.integers(0, 10, 1000), tuple("0123456789"))
    sdg = SDG(batch_size=BATCH, augmented_batch=DOMAINS * BATCH)
    made: dict[str, Method] = {"erm step": ERM(batch_size=BATCH), f"sdg meta step, {DOMAINS} domains of {BATCH}": sdg}
    for method in made.values():
        torch.manual_seed(0)
        network = build_network("lenet", 10, (32, 32, 3))
        method.set_up(Setup(network, source.batch([0]).images, torch.device("cpu"), source))
    sdg.augmentation.domains = [source] * DOMAINS

    def stepper(method: Method) -> Callable[[], object]:
        def step() -> object:
            torch.manual_seed(0)
            method.train_mode()
            return method.step(source.batch(range(BATCH)), 0)

        return step

    return {name: stepper(method) for name, method in made.items()}
