"""Losses of the first steps of every method on a tiny problem: a change that is to change nothing leaves them equal.

Made by `python -m tests.golden.test_losses`. A method that is not in the file is passed over.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import onedomain as od
from onedomain.methods import method_class, method_names
from tests.conftest import TinyNet, make_tiny

FILE = Path(__file__).with_name("losses.json")
STEPS = 6
COMMON = {"batch_size": 12, "learning_rate": 1e-2, "log_every": 1, "schedule": "constant"}
SOON = {  # what would else begin after the last of these steps
    "sdg": {"warm_up": 1, "domain_every": 2, "domain_size": 20, "wae_epochs": 1, "ascent_steps": 2},
    "gud": {"round_every": 2, "rounds": 2, "round_size": 20, "ascent_steps": 2},
    "me-ada": {"round_every": 2, "rounds": 2, "round_size": 20, "ascent_steps": 2},
    "uncertain-sdg": {"warm_up": 1, "learning_rate": 1e-3},
}


def losses(name: str) -> list[float]:
    torch.manual_seed(0)
    method = method_class(name)(**{**COMMON, **SOON.get(name, {})})
    layers = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"]}
    run = od.fit(method, make_tiny(), **layers, steps=STEPS, seed=3, device="cpu", progress=False)
    return [row["loss"] for row in run.history if "loss" in row]


GOLDEN = json.loads(FILE.read_text()) if FILE.exists() else {}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_the_losses_of_the_first_steps_are_as_they_were(name):
    assert losses(name) == pytest.approx(GOLDEN[name], rel=1e-3)


def test_every_loss_of_a_step_is_there():
    assert all(len(values) == STEPS for values in GOLDEN.values())
    assert {"erm", "sdg", "uncertain-sdg", "gud"} <= set(GOLDEN)


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: losses(name) for name in method_names()}, indent=1) + "\n")
