from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import onedomain as od
from onedomain.networks.pretrained import load_pretrained


class Dense(nn.Module):
    """A small network in the manner of FCN: a backbone of ResNet's kind, and scores."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.backbone = nn.Sequential()
        self.backbone.add_module("conv1", nn.Conv2d(3, 4, 3, padding=1))
        self.backbone.add_module("bn1", nn.BatchNorm2d(4))
        self.score = nn.Conv2d(4, classes, 1)

    def forward(self, images):
        return self.score(self.backbone(images))


def classifier(**changes):
    """What a public file holds: the backbone's names without a prefix, a head of its own, no counters if it is old."""
    weights = {
        "conv1.weight": torch.full((4, 3, 3, 3), 0.5),
        "conv1.bias": torch.arange(4.0),
        "bn1.weight": torch.full((4,), 2.0),
        "bn1.bias": torch.zeros(4),
        "bn1.running_mean": torch.full((4,), 7.0),
        "bn1.running_var": torch.ones(4),
        "fc.weight": torch.zeros(1000, 4),
        "fc.bias": torch.zeros(1000),
    }
    return {**weights, **changes}


@pytest.mark.parametrize("ending", ["safetensors", "pth", "wrapped.pth", "old.pth"])
def test_a_public_classifier_fills_the_backbone_and_it_is_said(tmp_path, ending):
    path = tmp_path / f"resnet.{ending}"
    if ending == "safetensors":
        save_file(classifier(), path)
    elif ending == "wrapped.pth":
        torch.save({"state_dict": {f"module.{name}": t for name, t in classifier().items()}, "epoch": 90}, path)
    else:
        torch.save(classifier(), path, _use_new_zipfile_serialization=ending != "old.pth")
    network = Dense()
    before = network.score.weight.clone()
    loaded = load_pretrained(network, path)
    assert (network.backbone.conv1.weight == 0.5).all()
    assert (network.backbone.bn1.running_mean == 7).all()
    assert torch.equal(network.score.weight, before)
    assert loaded == (
        f"{path.name}: 6 of 8 tensors of the network loaded; as initialised: score.bias, score.weight; "
        "not used of the file: fc.bias, fc.weight"
    )


def test_a_head_for_other_classes_is_left_out(tmp_path):
    save_file(Dense(classes=5).state_dict(), tmp_path / "five.safetensors")
    loaded = load_pretrained(Dense(classes=3), tmp_path / "five.safetensors")
    left = "score.bias, score.weight"
    assert loaded.endswith(f"; as initialised: {left}; not used of the file: {left}")
    same = load_pretrained(Dense(classes=5), tmp_path / "five.safetensors")
    assert same == "five.safetensors: 8 of 8 tensors of the network loaded"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (classifier(**{"conv1.bias": torch.zeros(5)}), r"conv1.bias is of shape \(5,\), and here \(4,\)"),
        (
            {"other": torch.zeros(1)},
            r"has no weight of this network \(it has other\); allowed: names such as backbone.",
        ),
        ({"conv1.weight": "text"}, "is not a mapping of names to tensors"),
        ([torch.zeros(1)], "is not a mapping of names to tensors"),
        (nn.Linear(1, 1), "holds no weights, or more than weights"),  # a whole module: would have to be executed
        (b"garbage", "holds no weights, or more than weights"),
        (b"QK\x03\x04", "holds no weights, or more than weights"),  # one bit beside a zip file
        (None, "is not there; allowed: a .safetensors file"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "weights.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    network = Dense()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with pytest.raises(od.UserError, match=f"weights.pth: {message}"):
        load_pretrained(network, path)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def dense_domain():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    return od.Domain("dense", "train", images, (images[..., 0] // 86).astype(np.uint8), ("a", "b", "c"))


def test_a_run_keeps_what_it_started_from_and_resumes_without_the_file(tmp_path, capsys):
    save_file(classifier(), tmp_path / "resnet.safetensors")

    def fit(steps, **given):
        torch.manual_seed(0)
        return od.fit("erm", dense_domain(), network=Dense(), progress=False, steps=steps, **given)

    run = fit(3, weights=tmp_path / "resnet.safetensors", out=tmp_path / "a")
    assert "resnet.safetensors: 6 of 8 tensors of the network loaded" in capsys.readouterr().err
    assert run.manifest.network.weights.startswith("resnet.safetensors sha256:")
    assert od.load(tmp_path / "a", network=Dense()).manifest.network.weights == run.manifest.network.weights
    plain = fit(3)
    assert not torch.equal(plain.network.module.backbone.conv1.weight, run.network.module.backbone.conv1.weight)

    (tmp_path / "a" / "model.safetensors").unlink()
    again = fit(3, out=tmp_path / "a", resume=True)
    assert torch.equal(again.network.module.backbone.conv1.weight, run.network.module.backbone.conv1.weight)
    (tmp_path / "a" / "checkpoint.pt").unlink()
    with pytest.raises(od.UserError, match="weights: is None now, and was 'resnet.safetensors sha256"):
        fit(3, out=tmp_path / "a", resume=True)
