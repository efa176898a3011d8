from __future__ import annotations

import pytest
import torch

from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.networks import own_network
from tests.methods.compared import begun
from tests.methods.uncertain import SmoothNet

RATE = 0.5  # large, so that the step ahead shows


@pytest.mark.parametrize("convolution", ["progressive", "mixed"])
def test_a_step_is_tested_on_changed_images_one_gradient_step_ahead(tiny, convolution):
    """Against the textbook: one pass for each changed batch, one graph for everything."""
    settings = {"convolution": convolution, "domains": 2, "inner_rate": RATE}
    method = begun("meta-randconv", tiny, own_network(SmoothNet()), **settings)
    module = method.network.module.double()
    images, labels = tiny.batch(range(12))
    images = images.double()
    torch.manual_seed(1)
    changed = [method.changed(images) for _ in range(2)]

    theta = dict(module.named_parameters())
    source = task_loss(module(images), labels).mean()
    inner = torch.autograd.grad(source, list(theta.values()), create_graph=True)
    ahead = {name: p - RATE * gradient for (name, p), gradient in zip(theta.items(), inner, strict=True)}
    tested = [task_loss(torch.func.functional_call(module, ahead, (each,)), labels).mean() for each in changed]
    total = source + sum(tested)
    expected = torch.autograd.grad(total, list(theta.values()))

    torch.manual_seed(1)
    logged = method.step(Batch(images, labels), 0)
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-10)
    assert logged["loss"].item() == pytest.approx(total.item())
