"""Two processes train as one does: the same gradients, the same losses, and weights that are equal on both."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
import torch

import onedomain as od
from tests.conftest import ROOT, TinyNet, make_tiny
from tests.distributed.checks import COMMON, MATHEMATICS, curves

PROCESSES = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each process found; they start once, and make all checks."""
    file = tmp_path_factory.mktemp("found") / "found"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(PROCESSES)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.distributed.checks", file],
            env={**common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(PROCESSES)
    ]
    said = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0] * PROCESSES, said
    return [{"folder": file.parent, **torch.load(f"{file}-{rank}.pt")} for rank in range(PROCESSES)]


@pytest.mark.parametrize("check", MATHEMATICS, ids=lambda check: check.__name__)
def test_two_processes_find_what_one_finds_in_double_precision(found, check):
    for name, value in check().items():
        scale = max(1.0, float(value.abs().max()))
        for there in found:
            assert torch.allclose(there[check.__name__][name], value, rtol=0, atol=1e-10 * scale), name


def test_losses_and_scores_are_those_of_one_process_but_for_rounding(found, tmp_path):
    for name, alone in curves(tmp_path).items():
        for there in found:
            assert torch.allclose(there["curves"][name], alone, rtol=2e-4), name


def test_every_method_ends_with_the_same_weights_on_both(found):
    weights = [there["every_method"] for there in found]
    assert len(weights[0]) > 13 * 8
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name
        assert bool(value.isfinite().all())


def test_a_run_of_both_is_a_run_like_any_other(found):
    folder = found[0]["folder"] / "every_method" / "sdg"
    run = od.load(folder, network=TinyNet())
    assert run.manifest.environment.processes == PROCESSES
    assert len(run.history) == 5 + 2
    assert run.evaluate({"tiny": make_tiny()})["tiny"].count == 60


def test_resumed_by_as_many_it_ends_with_the_same_bits(found):
    for there in found:
        for name, (whole, again) in there["resumed"].items():
            assert torch.equal(whole, again), name


def test_resumed_by_one_process_it_is_refused(found):
    folder = found[0]["folder"] / "every_method" / "erm"
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "out": folder, "resume": True}
    with pytest.raises(od.UserError, match="processes: 1 now, and 2 before; allowed: torchrun --nproc-per-node 2 -m"):
        od.fit(od.ERM(**COMMON), make_tiny(), **given, steps=5, progress=False)


def test_what_cannot_be_split_is_refused(found):
    for there in found:
        said = there["refused"]
        assert said["odd"] == "batch_size: 9 for 2 processes; allowed: a multiple of 2, from 4"
        assert said["few"] == "batch_size: 2 for 2 processes; allowed: a multiple of 2, from 4"
        assert "processes have other weights at step 2" in said["alone"]
    assert not (found[0]["folder"] / "refused" / "odd").exists()
