from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.networks import build_network, own_network
from tests.conftest import TinyNet

CPU = torch.device("cpu")


def test_any_module_takes_part_as_it_is(tiny_net):
    network = own_network(tiny_net, embedding="pool", perturb=["conv"])
    images = torch.rand(2, 1, 8, 8)
    tiny_net.eval()
    logits, z = network.embed(images)
    assert network.module is tiny_net
    assert torch.equal(logits, tiny_net(images))
    assert torch.equal(z, tiny_net.pool(torch.relu(tiny_net.norm(tiny_net.conv(images)))))
    assert not tiny_net.pool._forward_hooks


def test_the_embedding_carries_gradients_to_the_input(tiny_net):
    images = torch.rand(2, 1, 8, 8, requires_grad=True)
    own_network(tiny_net, embedding="pool").embed(images)[1].sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


@pytest.mark.parametrize("field", ["embedding", "perturb"])
def test_a_layer_that_is_not_there_is_named_with_the_nearest(tiny_net, field):
    with pytest.raises(UserError, match=rf"{field}: 'con' is not known, did you mean 'conv'\?.*head"):
        own_network(tiny_net, **{field: "con" if field == "embedding" else ["con"]})


def test_embed_without_a_named_layer_says_which_there_are(tiny_net):
    with pytest.raises(UserError, match="embedding: .*not named; allowed: one of conv, norm"):
        own_network(tiny_net).embed(torch.rand(1, 1, 8, 8))


def test_a_layer_that_forward_skips_is_refused():
    module = TinyNet()
    module.spare = nn.Linear(1, 1)
    with pytest.raises(UserError, match="'spare' is never called"):
        own_network(module, embedding="spare").embed(torch.rand(2, 1, 8, 8))


def test_what_is_no_module_is_refused():
    with pytest.raises(UserError, match="network: got a function"):
        own_network(lambda x: x)


def test_an_unknown_name_is_refused():
    with pytest.raises(UserError, match="network: 'linet' is not known, did you mean 'lenet'"):
        build_network("linet", 10, (32, 32, 3))


def test_a_network_that_does_not_fit_the_data_is_refused(tiny):
    own_network(TinyNet()).check_fits(tiny, CPU)
    with pytest.raises(UserError, match=r"output of shape \(2, 5\) for 2 images; allowed: logits of shape \(2, 3\)"):
        own_network(TinyNet(classes=5)).check_fits(tiny, CPU)
    with pytest.raises(UserError, match=r"network: cannot take images of shape \(2, 1, 8, 8\)"):
        own_network(TinyNet(channels=3)).check_fits(tiny, CPU)
    batch_norm = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.BatchNorm1d(3))
    with pytest.raises(UserError, match="network: cannot take images of shape .*more than 1 value"):
        own_network(batch_norm).check_fits(tiny, CPU, batch_size=1)
    with pytest.raises(UserError, match="network: has no parameter that can be trained"):
        own_network(nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(3))).check_fits(tiny, CPU)


def test_trying_the_network_changes_neither_its_mode_nor_its_statistics(tiny, tiny_net):
    before = tiny_net.norm.running_mean.clone()
    own_network(tiny_net).check_fits(tiny, CPU)
    assert tiny_net.training
    assert torch.equal(tiny_net.norm.running_mean, before)


def test_dense_outputs_fit_dense_labels():
    labels = np.random.default_rng(0).integers(0, 4, (5, 8, 8))
    domain = Domain("dense", "train", np.zeros((5, 8, 8, 3), np.uint8), labels, tuple("abcd"))
    own_network(nn.Conv2d(3, 4, 1)).check_fits(domain, CPU)
    with pytest.raises(UserError, match=r"allowed: logits of shape \(2, 4, 8, 8\)"):
        own_network(nn.Conv2d(3, 4, 3)).check_fits(domain, CPU)


@pytest.mark.parametrize("form", ["logits", "mapping", "tuple"])
def test_networks_may_return_more_than_logits(form):
    class Wordy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(48, 3)

        def forward(self, images):
            logits = self.fc(images.flatten(1))
            forms = {"logits": SimpleNamespace(logits=logits), "mapping": {"logits": logits}, "tuple": (logits, images)}
            return forms[form]

    data = np.random.default_rng(0).integers(0, 255, (30, 4, 4, 3), dtype=np.uint8), np.arange(30) % 3
    settings = {"steps": 3, "warm_up": 1, "domain_every": 1, "domains": 1, "wae_epochs": 1, "ascent_steps": 1}
    for method in (od.ERM(steps=2), od.SDG(**settings)):
        run = od.fit(method, data, network=Wordy(), embedding="fc", progress=False)
        assert run.predict(data[0]).probabilities.shape == (30, 3)
