"""Every method on a wide residual network, which has BatchNorm throughout: a few steps on a few images."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.benchmarks import find_benchmark
from onedomain.data.domain import Domain
from onedomain.methods import method_class, method_names
from onedomain.networks import build_network
from tests.conftest import set_up

SMALL = {
    "jigen": {"permutations": 5},
    "gud": {"rounds": 1, "round_every": 1, "round_size": 6, "ascent_steps": 1},
    "me-ada": {"rounds": 1, "round_every": 1, "round_size": 6, "ascent_steps": 1},
    "sdg": {"warm_up": 1, "domain_every": 1, "domains": 2, "domain_size": 8, "wae_epochs": 1, "ascent_steps": 1},
    "uncertain-sdg": {"warm_up": 1, "prediction_draws": 2},
    "pro-randconv": {"repeats": 2},
    "meta-randconv": {"repeats": 2},
    "moved-randconv": {"repeats": 2},
}
ABLATIONS = [
    ("sdg", {"beta": 0}),
    ("sdg", {"alpha": 0}),
    ("sdg", {"meta": False}),
    ("sdg", {"second_order": False}),
    ("sdg", {"relax": "input", "prior": "mmd"}),
    ("uncertain-sdg", {"uncertainty": False}),
    ("uncertain-sdg", {"adversary": "burst", "burst_steps": 1, "burst_updates": 2}),
    ("uncertain-sdg", {"perturbed_weight": 1.0, "mixup_weight": 0.0}),
]


@pytest.fixture(scope="module")
def images() -> Domain:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    return Domain("tiny", "train", pixels, np.arange(20) % 10, tuple("abcdefghij"))


@pytest.mark.parametrize(("name", "changed"), [*((name, {}) for name in method_names()), *ABLATIONS])
def test_it_runs_by_the_settings_of_the_benchmark(name, changed, images):
    usual = find_benchmark("cifar10-c-lite").settings_of(name)
    settings = {**usual, **SMALL.get(name, {}), "steps": 3, "batch_size": 10}
    settings |= {"augmented_batch": 4} if name == "sdg" else {}
    run = od.fit(method_class(name)(**{**settings, **changed}), images, network="wrn-10-1", progress=False)
    assert math.isfinite(run.history[-1]["loss"])
    assert np.isfinite(run.predict(images.images[:3]).probabilities).all()
    moved = run.network.module.features.group1[0].norm1.running_mean
    assert moved.abs().max() > 0


def test_running_statistics_are_those_of_the_source_batch(images):
    """As in docs/methods.md: moved once a meta step, by the source at θ, whatever the number of domains."""
    torch.manual_seed(0)
    method = method_class("sdg")(**SMALL["sdg"], auto_encoder="conv")
    set_up(method, build_network("wrn-10-1", 10, (16, 16, 3)), images)
    method.augmentation.domains += [images, images]
    module, batch = method.network.module.train(), images.batch(range(8))
    alone = build_network("wrn-10-1", 10, (16, 16, 3)).module
    alone.load_state_dict(module.state_dict())
    alone.train()(batch.images)
    method.step(batch, 0)
    expected = {name: buffer for name, buffer in alone.named_buffers() if "running" in name}
    for name, buffer in module.named_buffers():
        if name in expected:
            torch.testing.assert_close(buffer, expected[name], rtol=1e-5, atol=1e-6)
    assert module.features.norm.num_batches_tracked == 1
