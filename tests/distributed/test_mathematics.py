"""Two processes find what one does, to the last bits of double precision."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
import torch

from tests.conftest import ROOT
from tests.distributed.checks import GROUPS

PROCESSES = 2


def started(arguments, processes=PROCESSES):
    """The arguments of a Python run as so many processes that know of each other, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    return [
        subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("found") / "found"
    for process in started(["-m", "tests.distributed.checks", "mathematics", file]):
        assert process.wait(timeout=120) == 0, process.stderr.read()
    return [torch.load(f"{file}-{rank}.pt") for rank in range(PROCESSES)]


@pytest.mark.parametrize("check", GROUPS["mathematics"], ids=lambda check: check.__name__)
def test_two_processes_find_what_one_finds(found, check):
    alone = check()
    for name, value in alone.items():
        scale = max(1.0, float(value.abs().max()))
        for there in found:
            assert torch.allclose(there[check.__name__][name], value, rtol=0, atol=1e-10 * scale), name
