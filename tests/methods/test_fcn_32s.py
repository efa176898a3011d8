"""A step of both of the paper's methods on the paper's network for labels of pixels, too large for the other tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from onedomain.data.domain import Domain
from onedomain.methods import method_class
from onedomain.networks import build_network
from tests.conftest import set_up

SETTINGS = {
    "sdg": {"warm_up": 0, "domain_size": 2, "domains": 1, "ascent_steps": 1, "wae_epochs": 1, "augmented_batch": 2},
    "uncertain-sdg": {"warm_up": 0},
}
VOID = 3


def streets() -> Domain:
    """Two images of 64×64: sky above, a road below, and a strip of void."""
    labels = np.zeros((2, 64, 64), np.uint8)
    labels[:, 32:], labels[:, 60:] = 1, VOID
    images = np.random.default_rng(0).integers(0, 120, (2, 64, 64, 3)) + 120 * (labels[..., None] == 0)
    return Domain("streets", "train", images.astype(np.uint8), labels, ("sky", "road", "car"), VOID)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_step_moves_every_layer_and_stays_finite(name):
    torch.manual_seed(0)
    source = streets()
    method = method_class(name)(batch_size=2, **SETTINGS[name])
    set_up(method, build_network("fcn-32s", 3, (64, 64, 3)), source)
    batch = source.batch(range(2))
    list(method.prepare(1))
    module = method.network.module.train()
    before = {key: parameter.detach().clone() for key, parameter in module.named_parameters()}
    losses = method.step(batch, 1)
    assert "augmented" in losses  # the meta-step was taken, not a step on the source alone
    assert all(math.isfinite(value) for value in losses.values())
    still = [key for key, value in module.named_parameters() if value.requires_grad and torch.equal(value, before[key])]
    assert not still
    assert all(value.isfinite().all() for value in module.state_dict().values())
    said = method.predictive(batch.images, draws=0)
    assert said.probabilities.shape == (2, 3, 64, 64)
