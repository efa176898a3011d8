"""The command as torchrun starts it: one of its processes is killed, the run ends clearly, and is resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image

from tests.conftest import ROOT, make_tiny

SETTINGS = ("batch_size=8", "domain_size=40", "wae_epochs=1", "warm_up=4", "domain_every=4", "ascent_steps=2")
TRAIN = ("--method", "sdg", "--steps", "16", "--network", "lenet", "--no-evaluate")
OFTEN = ("checkpoint_every=3", "log_every=1")


def start(folder, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "onedomain", "train", "--out", folder, *arguments]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def workers(process):
    """The processes that torchrun started, by their rank."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    return sorted(map(int, listed.split()))


def settings(*given):
    return [word for each in given for word in ("--set", each)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the processes as Linux lists them")
def test_a_worker_is_killed_and_the_run_resumed_ends_with_the_same_bits(tmp_path):
    images = make_tiny(30)
    for place, (pixels, label) in enumerate(zip(images.images, images.labels, strict=True)):
        folder = tmp_path / "images" / images.classes[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[:, :, 0]).resize((16, 16)).save(folder / f"{place}.png")
    given = [*TRAIN, "--source", tmp_path / "images", "--size", "16x16", *settings(*SETTINGS, *OFTEN)]
    whole = start(tmp_path / "whole", *given, "--json")
    printed, _ = whole.communicate(timeout=240)
    assert whole.returncode == 0
    assert json.loads(printed)["method"] == "sdg"  # one document, of one process

    killed, metrics = start(tmp_path / "killed", *given), tmp_path / "killed" / "metrics.jsonl"
    while not (metrics.exists() and "augmented-2" in metrics.read_text()):
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.05)
    os.kill(workers(killed)[1], signal.SIGKILL)
    told = killed.communicate(timeout=240)[1]
    assert killed.returncode != 0
    assert told.count("onedomain: another process of this run has ended; the same command with --resume goes on") == 1
    assert not (tmp_path / "killed" / "model.safetensors").exists()

    resumed = start(tmp_path / "killed", *given, "--resume")
    told = resumed.communicate(timeout=240)[1]
    assert resumed.returncode == 0, told
    assert told.count("The run is in") == 1
    for name in ("model.safetensors", "augmented/augmented-1.npy", "augmented/augmented-3.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes(), name


def test_other_commands_are_for_one_process(onedomain, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    code, _, told = onedomain("evaluate", "runs/a")
    assert (code, told) == (2, "onedomain: torchrun: evaluate is made for one process; allowed: train\n")
