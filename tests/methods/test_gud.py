"""GUD and ME-ADA: what images climb, how far they may go, and that they are learned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.components.equations import task_loss
from onedomain.methods.me_ada import prediction_entropy
from tests.conftest import TinyNet
from tests.methods.compared import begun, fit


def test_gud_adds_images_that_are_harder_and_they_are_trained_on(tiny):
    method = begun("gud", tiny, ascent_rate=0.5, ascent_steps=10, gammas=(0.0,), round_size=60)
    for _ in range(30):
        method.network.module.train()
        method.step(tiny.batch(range(60)), 0)
    list(method.prepare(2))
    assert not method.augmentations[0].domains
    list(method.prepare(3))
    [made] = method.augmentations[0].domains
    batch = made.batch(range(60))
    method.network.module.eval()
    with torch.no_grad():
        hard = task_loss(method.network(batch.images), batch.labels).mean()
        easy = task_loss(method.network(tiny.batch(range(60)).images), torch.from_numpy(tiny.labels)).mean()
    assert hard > 1.2 * easy
    assert len(method.augmentations[0].pool) == 120
    for _ in range(60):
        method.network.module.train()
        method.step(tiny.batch(range(60)), 0)
    method.network.module.eval()
    with torch.no_grad():
        assert task_loss(method.network(batch.images), batch.labels).mean() < hard


def test_gamma_keeps_images_near_in_the_embedding_space(tiny):
    carried = {}
    for gamma in (0.0, 20.0):
        method = begun("gud", tiny, ascent_rate=0.02, ascent_steps=20, gammas=(gamma,))
        for _ in range(30):
            method.network.module.train()
            method.step(tiny.batch(range(60)), 0)
        batch = tiny.batch(range(60))
        climbed = method._climb(0, batch)
        with torch.no_grad():
            z, z_plus = (method.network.embed(images)[1].flatten(1) for images in (batch.images, climbed))
        carried[gamma] = (z_plus - z).square().sum(1).mean().item()
    assert carried[20.0] < 0.5 * carried[0.0]


def test_guds_ensemble_answers_by_its_most_confident_network(tiny, tmp_path):
    run = fit("gud", tiny, steps=8, out=tmp_path / "a", gammas="0.1,1,10")
    assert run.method.settings.gammas == (0.1, 1.0, 10.0)
    images = tiny.batch(range(9)).images
    with torch.no_grad():
        every = torch.stack([network(images).double().softmax(1) for network in run.method.networks])
    said = run.method.predictive(images).probabilities
    for place in range(9):
        surest = every[:, place].amax(1).argmax()
        assert torch.allclose(said[place], every[surest, place])
    again = od.load(tmp_path / "a", network=TinyNet()).predict(tiny.images)
    assert np.array_equal(again.probabilities, run.predict(tiny.images).probabilities)
    with pytest.raises(od.UserError, match="gammas"):
        od.GUD(gammas="-1")


def test_me_ada_climbs_the_entropy_too(tiny):
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    p = logits.softmax(1)
    assert torch.allclose(prediction_entropy(logits), -(p * p.log()).sum(1), atol=1e-6)
    entropies = {}
    for weight in (0.0, 20.0):
        method = begun("me-ada", tiny, entropy_weight=weight, ascent_rate=0.02, ascent_steps=10, gammas=(0.0,))
        for _ in range(30):
            method.network.module.train()
            method.step(tiny.batch(range(60)), 0)
        changed = method._climb(0, tiny.batch(range(60)))
        method.network.module.eval()
        entropies[weight] = prediction_entropy(method.network(changed)).mean().item()
    assert entropies[20.0] > entropies[0.0]
