from __future__ import annotations

import pytest
import torch

from onedomain.networks import build_network


@pytest.mark.parametrize(
    ("name", "parameters", "features"), [("resnet18", 11_689_512, 512), ("resnet50", 25_557_032, 2048)]
)
def test_they_have_the_published_number_of_parameters(name, parameters, features):
    network = build_network(name, 1000, (64, 64, 3))
    assert network.parameter_count == parameters
    network.module.eval()
    logits, z = network.embed(torch.rand(2, 3, 64, 64))
    assert (logits.shape, z.shape) == ((2, 1000), (2, features))
    assert torch.equal(network.module.fc(z), logits)


def test_names_are_those_of_public_weights():
    names = set(build_network("resnet18", 10, (64, 64, 3)).module.state_dict())
    expected = {"conv1.weight", "bn1.running_mean", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight"}
    assert {*expected, "layer2.0.downsample.1.bias", "layer4.1.bn2.weight", "fc.weight", "fc.bias"} <= names
    assert not any("standardise" in name for name in names)
    assert "layer3.5.conv3.weight" in build_network("resnet50", 10, (64, 64, 3)).module.state_dict()
