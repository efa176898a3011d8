from __future__ import annotations

import torch

from onedomain.methods.adapt.ccsa import CCSA
from onedomain.networks import own_network
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny, set_up


def test_pairs_across_the_domains_draw_together_and_both_domains_are_learned():
    torch.manual_seed(0)
    source, shots = make_tiny(), make_dim().subset(range(21))
    method = set_up(CCSA(learning_rate=1e-2), own_network(TinyNet(), embedding="pool"), source, shots=shots)
    method.network.module.train()
    rows = [method.step(source.batch(torch.randint(60, (24,)).numpy()), step) for step in range(80)]
    assert rows[-1]["pairs"] < 0.6 * rows[0]["pairs"]
    assert rows[-1]["task"] < 0.6 * rows[0]["task"]
    assert torch.isclose(rows[0]["loss"], 0.75 * rows[0]["task"] + 0.25 * rows[0]["pairs"])
    method.network.module.eval()
    batch = make_dim(30, seed=8).batch(range(30))
    assert (method.network(batch.images).argmax(1) == batch.labels).float().mean() > 0.8
