"""Whole runs of Uncertain SDG: trained, resumed, saved, asked, and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.data.domain import Domain
from onedomain.methods.uncertain_sdg import UncertainSDG
from tests.conftest import TinyNet, make_tiny
from tests.methods.uncertain import QUICK, SmoothNet


@pytest.mark.parametrize(
    "settings",
    [
        {"adversary": "none"},
        {"adversary": "burst"},
        {"adversary": "alternate"},
        {"uncertainty": False},
        {"mixup_weight": 0.0},
        {"perturbed_weight": 0.0, "mixup_weight": 1.0},
        {"domains": 3},
        {"second_order": False, "inner_steps": 2},
        {"image": True, "ceiling": 0.4},
        {"image": True, "ceiling": 0.4, "uncertainty": False},
    ],
)
def test_it_trains_on_ones_own_network_and_data(settings):
    tiny = make_tiny(60)
    torch.manual_seed(0)
    method = od.UncertainSDG(**{**QUICK, **settings})
    run = od.fit(method, tiny, network=TinyNet(), embedding="pool", perturb=["conv"], steps=60, progress=False)
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8
    assert run.method.training_parameters > run.network.parameter_count


@pytest.mark.parametrize("moment", [2, 5, 9])
@pytest.mark.parametrize(("adversary", "image"), [("alternate", False), ("throughout", True), ("burst", True)])
def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path, tiny, moment, adversary, image, monkeypatch):
    settings = {**QUICK, "checkpoint_every": 2, "burst_steps": 4, "adversary": adversary, "mixup_weight": 0.5}
    settings |= {"image": image, "ceiling": 0.4 if image else 0.0}

    def fit(folder, resume=False):
        torch.manual_seed(3)
        given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 12, "progress": False}
        return od.fit(UncertainSDG(**settings), tiny, out=folder, resume=resume, **given)

    fit(tmp_path / "whole")
    original = UncertainSDG.step

    def killed(self, batch, step):
        if step == moment:
            raise KeyboardInterrupt
        return original(self, batch, step)

    monkeypatch.setattr(UncertainSDG, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "killed")
    monkeypatch.setattr(UncertainSDG, "step", original)
    fit(tmp_path / "killed", resume=True)
    for name in ("model.safetensors", "auxiliary.safetensors", "calibration.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("image", [False, True])
def test_predictions_are_the_networks_with_draws_beside_them_and_the_same_each_time(tmp_path, image):
    tiny = make_tiny(300)
    torch.manual_seed(0)
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 60, "progress": False}
    settings = {**QUICK, "image": image, "prediction_draws": 7}
    run = od.fit(UncertainSDG(**settings), tiny, out=tmp_path / "a", **given)
    said = run.method.predictive(tiny.batch(range(40)).images)
    assert said.probabilities.shape == (40, 3)
    assert torch.allclose(said.probabilities.sum(1), torch.ones(40, dtype=torch.float64))
    assert said.statistics.shape == (40, 8)  # μ and σ of four channels
    assert (said.mutual_information >= 0).all()
    assert said.mutual_information.max() > 0
    plain = run.method.predictive(tiny.batch(range(40)).images, draws=0)
    run.network.module.eval()
    assert torch.allclose(said.probabilities.float(), run.network(tiny.batch(range(40)).images).softmax(1), atol=1e-6)
    assert torch.equal(plain.probabilities, said.probabilities)
    assert (plain.mutual_information == 0).all()
    assert not torch.allclose(said.mean, said.probabilities, atol=1e-3)
    p, loaded = run.predict(tiny.images), od.load(tmp_path / "a", network=TinyNet()).predict(tiny.images)
    assert np.array_equal(p.probabilities, loaded.probabilities)
    assert np.array_equal(p.mutual_information, loaded.mutual_information)
    assert np.array_equal(p.mean_probabilities, loaded.mean_probabilities)
    assert np.allclose(p.mean_probabilities[:40], said.mean.numpy(), atol=1e-6)
    entropies = -(p.mean_probabilities * np.log(p.mean_probabilities)).sum(1)
    assert np.allclose(p.predictive_entropy, entropies)
    assert np.array_equal(p.out_of_domain, loaded.out_of_domain)
    alone = run.predict(tiny.images[7:8])
    assert np.allclose(alone.probabilities[0], p.probabilities[7], atol=1e-6)
    assert np.allclose(alone.mutual_information[0], p.mutual_information[7], atol=1e-6)
    assert p.out_of_domain.mean() < 0.3
    assert run.predict(255 - tiny.images).out_of_domain.mean() > 0.9


def test_labels_of_pixels_can_be_learned_too():
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(1, 6, 3, padding=1)
            self.second = nn.Conv2d(6, 2, 1)

        def forward(self, images):
            return self.second(self.first(images).relu())

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 8, 8, 1), dtype=np.uint8)
    labels = (images[..., 0] > 127).astype(np.int64)
    labels[:, :2] = 7
    domain = Domain("dense", "train", images, labels, ("dark", "bright"), void=7)
    torch.manual_seed(0)
    method = od.UncertainSDG(**{**QUICK, "mixup_weight": 1.0})
    run = od.fit(method, domain, network=Dense(), embedding="first", perturb=["first"], steps=120, progress=False)
    assert run.evaluate({"same": domain})["same"].accuracy > 0.9
    assert run.predict(images[:3]).mutual_information.shape == (3, 8, 8)


def test_settings_that_leave_nothing_to_learn_from_are_refused():
    with pytest.raises(od.UserError, match="perturbed_weight and mixup_weight not both 0"):
        od.UncertainSDG(perturbed_weight=0, mixup_weight=0)


def test_a_network_without_named_layers_is_refused_before_anything_is_written(tiny, tmp_path):
    with pytest.raises(od.UserError, match="perturb: no layer is named"):
        od.fit(od.UncertainSDG(), tiny, network=TinyNet(), embedding="pool", out=tmp_path / "a", progress=False)
    assert not list(tmp_path.iterdir())


def test_its_measures_are_logged(tmp_path, tiny):
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 10, "progress": False}
    od.fit(UncertainSDG(**QUICK), tiny, out=tmp_path / "a", **given)
    rows = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    assert {"perturbation", "sigma", "smoothness", "tau", "mix"} <= rows[-1].keys()


def test_without_learned_uncertainty_the_domain_is_judged_by_entropy(tiny):
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 20, "progress": False}
    run = od.fit(UncertainSDG(**{**QUICK, "uncertainty": False}), tiny, **given)
    assert run.calibration.mean is None
    p = run.predict(tiny.images)
    assert np.allclose(p.domain_score, p.uncertainty)
    assert run.calibration.threshold > 0


def test_an_embedding_that_the_noise_does_not_reach_is_refused(tiny):
    given = {"network": SmoothNet(), "embedding": "features.0", "perturb": ["features.3"], "progress": False}
    for image in (False, True):
        with pytest.raises(od.UserError, match="embedding: 'features.0' does not depend on features.3"):
            od.fit(UncertainSDG(**{**QUICK, "image": image}), tiny, **given)


def test_large_pixel_values_leave_phi_finite(tiny):
    images = tiny.images.astype(np.float32) * 4
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 30, "progress": False}
    run = od.fit(UncertainSDG(**{**QUICK, "mixup_weight": 1.0}), (images, tiny.labels), **given)
    assert all(torch.isfinite(parameter).all() for parameter in run.method.phi.parameters())


def test_a_trained_network_whose_embedding_is_0_can_be_loaded(tiny, tmp_path):
    class Dead(SmoothNet):
        def __init__(self) -> None:
            super().__init__()
            self.features.append(nn.ReLU())

    network = Dead()
    given = {"embedding": "features", "perturb": ["features.0"], "steps": 2, "progress": False}
    run = od.fit(UncertainSDG(**QUICK), tiny, network=network, **given)
    nn.init.constant_(network.features[3].bias, -1e6)
    run.save(tmp_path / "a")
    od.load(tmp_path / "a", network=Dead())
