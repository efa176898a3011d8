"""Uncertain SDG for tests: quick settings, a smooth network, and the method just before a step."""

from __future__ import annotations

import torch
from torch import nn

from onedomain.methods.uncertain_sdg import UncertainSDG
from onedomain.networks import own_network
from tests.conftest import set_up

QUICK = {
    "batch_size": 12,
    "warm_up": 3,
    "learning_rate": 1e-2,
    "log_every": 5,
    "burst_steps": 2,
    "burst_updates": 3,
    "perturbed_weight": 1.0,
    "mixup_weight": 0.01,
    # As in the paper: layers alone, no ceiling.
    "image": False,
    "ceiling": 0.0,
    "alpha": 1.0,
    "adversary_rate": 0.1,
    "schedule": "constant",
}


class SmoothNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Softplus(), nn.Flatten(), nn.Linear(4 * 36, 6), nn.Tanh())
        self.head = nn.Linear(6, 3)

    def forward(self, images):
        return self.head(self.features(images))


def begun(module, source, layers=("features.0", "features.3"), embedding="features", double=False, **settings):
    torch.manual_seed(0)
    method = UncertainSDG(**{**QUICK, "warm_up": 0, **settings})
    if double:
        module.double()
    images = torch.rand(3, 1, 8, 8, dtype=torch.float64 if double else torch.float32)
    set_up(method, own_network(module, embedding, layers), source, images)
    if double:
        method.phi.double()
    return method
