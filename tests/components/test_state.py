"""A checkpoint is held against what it replaces before anything of it is loaded."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from onedomain.components.state import check, restored, saved


def stepped(optimiser, module):
    module(torch.ones(2, 3)).sum().backward()
    optimiser.step()
    return optimiser


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


@pytest.fixture
def adam(module):
    return stepped(torch.optim.Adam(module.parameters(), 1e-3, fused=True), module)


def through_json(state):
    """As a checkpoint gives it back: tuples are lists."""
    if isinstance(state, dict):
        return {key: through_json(value) for key, value in state.items()}
    return [through_json(each) for each in state] if isinstance(state, (list, tuple)) else state


def test_what_was_saved_fits_and_comes_back(module, adam):
    state = through_json(copy.deepcopy(saved([module, adam, 3, None])))
    other = nn.Linear(3, 2)
    parts = [other, torch.optim.Adam(other.parameters(), 1e-3, fused=True), 0, None]
    check(parts, state, "all")
    parts = restored(parts, state)
    assert torch.equal(other.weight, module.weight)
    assert torch.equal(parts[1].state[other.weight]["exp_avg"], adam.state[module.weight]["exp_avg"])
    assert parts[2] == 3


def test_sgd_before_and_after_its_first_step_fits(module):
    sgd = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    check(sgd, through_json(sgd.state_dict()), "sgd")
    check(sgd, through_json(stepped(sgd, module).state_dict()), "sgd")


CHANGES = {
    "a moment of one number": (lambda s: s["state"][0].update(exp_avg=torch.zeros(1)), "exp_avg is float32 of shape"),
    "a moment of another type": (lambda s: s["state"][0].update(exp_avg=torch.zeros(2, 3).double()), "float64"),
    "a moment that is no tensor": (lambda s: s["state"][0].update(exp_avg_sq=3.0), "exp_avg_sq is no tensor"),
    "a moment that is not finite": (lambda s: s["state"][0]["exp_avg"].fill_(torch.nan), "not finite"),
    "a negative second moment": (lambda s: s["state"][0]["exp_avg_sq"].fill_(-1.0), "below 0"),
    "a step with a shape": (lambda s: s["state"][0].update(step=torch.ones(7)), "step is float32"),
    "a parameter that is not there": (lambda s: s["state"].update({9: s["state"][0]}), "parameter 9"),
    "parameters in another order": (lambda s: s["param_groups"][0].update(params=[1, 0]), "other options"),
    "not fused": (lambda s: s["param_groups"][0].update(fused=False), "other options"),
    "an option too many": (lambda s: s["param_groups"][0].update(amused=True), "other options"),
    "an option too few": (lambda s: s["param_groups"][0].pop("betas"), "other options"),
    "a rate that is a text": (lambda s: s["param_groups"][0].update(lr="1"), "rate '1'"),
    "a rate below 0": (lambda s: s["param_groups"][0].update(lr=-1.0), "rate -1"),
    "two groups": (lambda s: s["param_groups"].append(s["param_groups"][0]), "not of 1 groups"),
    "no state": (lambda s: s.pop("state"), "state is missing"),
    "a state that is a list": (lambda s: s.update(state=[1]), "no mapping"),
}


@pytest.mark.parametrize(("change", "told"), CHANGES.values(), ids=CHANGES)
def test_an_optimiser_that_does_not_fit_is_refused(adam, change, told):
    state = through_json(copy.deepcopy(adam.state_dict()))
    change(state)
    with pytest.raises(ValueError, match=told):
        check(adam, state, "optimiser")


WEIGHTS = {
    "another shape": (lambda s: s.update(weight=torch.zeros(1)), r"weight is float32 of shape \(1,\)"),
    "another type": (lambda s: s.update(weight=s["weight"].half()), "float16"),
    "not finite": (lambda s: s["weight"].fill_(torch.inf), "not finite"),
    "missing": (lambda s: s.pop("bias"), "bias is missing"),
    "one too many": (lambda s: s.update(extra=torch.zeros(1)), "extra is not known"),
    "no tensor": (lambda s: s.update(bias=[0.0, 0.0]), "no tensor"),
}


@pytest.mark.parametrize(("change", "told"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_do_not_fit_are_refused(module, change, told):
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    change(state)
    with pytest.raises(ValueError, match=told):
        check(module, state, "network")


def test_a_mask_that_is_not_finite_here_need_not_be_there():
    module = nn.Module()
    module.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    check(module, module.state_dict(), "network")


@pytest.mark.parametrize(("part", "state"), [([1, 2], [1]), ([1], 1), (3, True), (3, "3"), (0.5, 1)])
def test_other_kinds_of_values_are_refused(part, state):
    with pytest.raises(ValueError, match="part"):
        check(part, state, "part")
