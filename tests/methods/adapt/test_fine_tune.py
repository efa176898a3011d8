from __future__ import annotations

import pytest
import torch

from onedomain.methods.adapt.fine_tune import FineTune
from onedomain.networks import own_network
from tests.adapting import make_dim
from tests.conftest import TinyNet, set_up


@pytest.mark.parametrize(
    ("settings", "shots", "steps"), [({}, 70, 438), ({}, 100, 625), ({"epochs": 3}, 16, 3), ({"steps": 9}, 70, 9)]
)
def test_the_number_of_steps_is_known_from_the_number_of_images(settings, shots, steps):
    assert FineTune(**settings).planned(shots)["steps"] == steps


def test_rate_and_batch_are_the_papers():
    assert (FineTune().settings.learning_rate, FineTune().settings.batch_size) == (1e-4, 16)


def test_all_weights_learn_the_drawn_images():
    torch.manual_seed(0)
    method, shots = FineTune(learning_rate=1e-2), make_dim(12)
    set_up(method, own_network(TinyNet()), shots, shots=shots)
    before = {name: weight.clone() for name, weight in method.network.module.named_parameters()}
    losses = [method.step(shots.batch(range(12)), step)["loss"] for step in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    assert all(not torch.equal(weight, before[name]) for name, weight in method.network.module.named_parameters())
