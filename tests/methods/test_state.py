"""A method names the parts of its state, and checkpoints keep them: no method writes its own."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.components.descent import descend
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods import method_class, method_names
from onedomain.methods.base import Method, Setup
from onedomain.networks import NamedNetwork
from tests.conftest import TinyNet, make_tiny, set_up


class EveryKind(Method):
    """A method whose state has a part of each kind: a network, a list of modules, an optimiser, a number, nothing."""

    summary, citation = "Two scales of the logits, trained in turn.", "nobody"
    state = ("network", "scales", "optimiser", "count", "nothing")

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        self.scales = [nn.Linear(3, 3).to(setup.device) for _ in range(2)]
        self.optimiser = self.optimiser_for(self.network.module, *self.scales)
        self.count, self.nothing = 0, None

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        self.count += 1
        logits = self.scales[self.count % 2](self.network(batch.images))
        return descend(self.optimiser, task_loss(logits, batch.labels).mean())


def begun() -> EveryKind:
    torch.manual_seed(0)
    return set_up(EveryKind(steps=4, learning_rate=1e-2), NamedNetwork(TinyNet()), make_tiny())


def test_the_parts_that_are_named_come_back():
    one, other = begun(), begun()
    batch = make_tiny().batch(range(12))
    for step in range(3):
        one.step(batch, step)
    state = copy.deepcopy(one.state_dict())  # as a file would hold it
    assert list(state) == list(EveryKind.state)
    other.load_state_dict(state)
    assert other.count == 3
    assert other.nothing is None
    for method in (one, other):  # the moments of Adam, too: the next step is the same
        torch.manual_seed(1)
        method.step(batch, 3)
    for left, right in zip(one.scales, other.scales, strict=True):
        assert torch.equal(left.weight, right.weight)
    assert torch.equal(one.network.module.conv.weight, other.network.module.conv.weight)


def test_every_trained_parameter_of_the_state_is_counted_once():
    method = begun()
    assert method.training_parameters == method.network.parameter_count + 2 * (9 + 3)


def test_a_killed_run_of_such_a_method_goes_on_exactly(tmp_path, monkeypatch):
    def fit(folder, resume=False):
        torch.manual_seed(0)
        method = EveryKind(steps=4, batch_size=12, checkpoint_every=2)
        given = {"network": TinyNet(), "device": "cpu", "progress": False}
        return od.fit(method, make_tiny(), out=tmp_path / folder, resume=resume, **given)

    def killed(self, batch, step):
        if step == 3:
            raise KeyboardInterrupt
        return learn(self, batch, step)

    whole = fit("whole").method
    learn = EveryKind.step
    monkeypatch.setattr(EveryKind, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit("killed")
    monkeypatch.setattr(EveryKind, "step", learn)
    resumed = fit("killed", resume=True).method
    assert resumed.count == 4
    for name, weight in whole.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name])
    assert torch.equal(whole.scales[1].weight, resumed.scales[1].weight)


def test_every_method_names_its_state(tiny):
    for name in method_names():
        method = set_up(method_class(name)(), NamedNetwork(TinyNet(), embedding="pool", perturb=("conv",)), tiny)
        assert set(method.state_dict()) == set(method.state)
