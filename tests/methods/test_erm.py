from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from onedomain.data.domain import Batch, Domain
from onedomain.methods.erm import ERM
from onedomain.networks import own_network
from tests.conftest import TinyNet, set_up


def begun(module, domain, **settings):
    return set_up(ERM(**settings), own_network(module), domain)


def test_a_step_is_a_textbook_step(tiny):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    textbook = copy.deepcopy(module)
    method = begun(module, tiny, learning_rate=1e-2)
    optimiser = torch.optim.Adam(textbook.parameters(), lr=1e-2)
    for start in range(0, 30, 10):
        images, labels = tiny.batch(range(start, start + 10))
        logged = method.step(Batch(images.double(), labels), start)
        optimiser.zero_grad()
        loss = functional.cross_entropy(textbook(images.double()), labels)
        loss.backward()
        optimiser.step()
        assert torch.allclose(logged["loss"], loss, atol=1e-12)
    for ours, theirs in zip(module.parameters(), textbook.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12)


def test_it_learns(tiny):
    method = begun(TinyNet(), tiny, learning_rate=1e-2)
    losses = [float(method.step(tiny.batch(range(60)), 0)["loss"]) for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]


def test_void_pixels_never_count():
    labels = np.random.default_rng(0).integers(0, 2, (4, 6, 6))
    labels[:, :3] = 9
    images = np.random.default_rng(1).integers(0, 256, (4, 6, 6, 3), dtype=np.uint8)
    domain = Domain("dense", "train", images, labels, ("a", "b"), void=9)
    module = nn.Conv2d(3, 2, 1)
    expected = functional.cross_entropy(
        module(domain.batch(range(4)).images)[:, :, 3:], torch.from_numpy(labels[:, 3:])
    )
    assert torch.allclose(begun(module, domain).step(domain.batch(range(4)), 0)["loss"], expected)
