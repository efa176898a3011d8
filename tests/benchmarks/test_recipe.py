"""The recipe that a benchmark may ask for: SGD, a schedule, flips and crops; resuming stays exact with all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.data.domain import Domain
from onedomain.errors import Interrupted
from onedomain.methods import method_class
from onedomain.networks import own_network
from onedomain.training.loop import train
from tests.conftest import TinyNet, set_up

RECIPE = {
    "optimiser": "sgd",
    "schedule": "cosine",
    "weight_decay": 5e-4,
    "flips_and_crops": True,
    "learning_rate": 0.05,
    "batch_size": 6,
    "checkpoint_every": 3,
    "log_every": 4,
}
SMALL = {
    "erm": {},
    "jigen": {"permutations": 5},
    "gud": {"rounds": 1, "round_every": 3, "round_size": 12, "ascent_steps": 2},
    "sdg": {"warm_up": 2, "domain_every": 2, "domains": 2, "domain_size": 12, "wae_epochs": 1, "ascent_steps": 2},
    "uncertain-sdg": {"warm_up": 2, "adversary": "alternate"},
}


def fit(name: str, source: Domain, out, resume: bool = False, **settings: object) -> od.Run:
    torch.manual_seed(3)
    method = method_class(name)(**{**RECIPE, **SMALL[name], "steps": 10, **settings})
    network = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"]}
    return od.fit(method, source, **network, out=out, resume=resume, progress=False)


@pytest.mark.parametrize("name", SMALL)
def test_stopped_and_resumed_it_ends_with_the_same_bits(name, tiny, tmp_path, monkeypatch):
    fit(name, tiny, tmp_path / "whole")
    kind = method_class(name)
    original = kind.step

    def stopping(self, batch, step):
        if len(seen) == 7:
            raise Interrupted("killed")
        seen.append(step)
        return original(self, batch, step)

    seen: list[object] = []
    monkeypatch.setattr(kind, "step", stopping)
    with pytest.raises(Interrupted):
        fit(name, tiny, tmp_path / "killed")
    monkeypatch.setattr(kind, "step", original)
    fit(name, tiny, tmp_path / "killed", resume=True)
    weights = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "killed")]
    assert weights[0] == weights[1]


def begun(tiny: Domain, **settings: object):
    torch.manual_seed(0)
    method = method_class("erm")(**{"steps": 8, "batch_size": 6, **settings})
    return set_up(method, own_network(TinyNet(), "pool"), tiny)


def test_the_rate_falls_along_half_a_cosine(tiny, monkeypatch):
    method = begun(tiny, schedule="cosine", learning_rate=0.2, optimiser="sgd")
    rates = []
    original = type(method).step

    def watched(self, batch, step):
        rates.append(self.optimiser.param_groups[0]["lr"])
        return original(self, batch, step)

    monkeypatch.setattr(type(method), "step", watched)
    train(method, shown=False)
    assert rates == pytest.approx([0.1 * (1 + math.cos(math.pi * each / 8)) for each in range(8)])


def test_sgd_is_that_of_the_textbook(tiny):
    """Two steps by hand: v ← 0.9·v + g, θ ← θ − rate·(g + 0.9·v), where g has the penalty in it."""
    method = begun(tiny, optimiser="sgd", learning_rate=0.1, weight_decay=0.01)
    head = method.network.module.head.bias
    expected, velocity = head.detach().clone(), torch.zeros_like(head)
    for gradient in (torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 0.1, -1.0])):
        head.grad = gradient.clone()
        for other in (p for p in method.network.module.parameters() if p is not head):
            other.grad = None
        method.optimiser.step()
        penalised = gradient + 0.01 * expected
        velocity = 0.9 * velocity + penalised
        expected = expected - 0.1 * (penalised + 0.9 * velocity)
    torch.testing.assert_close(head.detach(), expected)


def test_the_defaults_are_as_they_were(tiny):
    """Adam at a constant rate, batches as they come: no random number is drawn for what is not asked for."""
    method = begun(tiny)
    assert isinstance(method.optimiser, torch.optim.Adam)
    batch = tiny.batch([0, 1])
    before = torch.random.get_rng_state()
    assert method.varied(batch) is batch
    method.set_rate(5)
    assert method.optimiser.param_groups[0]["lr"] == 1e-4
    assert torch.equal(torch.random.get_rng_state(), before)


def test_flips_and_crops_reach_the_source_and_the_domains(tiny):
    coloured = Domain("tiny", "train", np.repeat(tiny.images, 3, 3), tiny.labels, tiny.classes)
    sdg = method_class("sdg")(**{**RECIPE, **SMALL["sdg"], "flips_and_crops": True})
    torch.manual_seed(0)
    set_up(sdg, own_network(TinyNet(3), "pool"), coloured)
    sdg.augmentation.domains.append(coloured)
    drawn = sdg._draw()[0].images.flatten(1)
    originals = coloured.batch(range(len(coloured))).images.flatten(1)
    as_it_was = (drawn[:, None] == originals).all(2).any(1)
    assert 0 < as_it_was.sum() < len(drawn)
