"""Mixed precision: 16 bits inside the passes, single precision around them, also through second-order steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.components.descent import descend
from onedomain.components.meta import batch_losses, meta_gradient
from onedomain.methods import method_class, method_names
from onedomain.methods.sdg import SDG
from onedomain.networks import own_network
from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from tests.conftest import TinyNet
from tests.golden.test_losses import COMMON, SOON
from tests.methods.uncertain import SmoothNet

HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
SCALE = 2.0**10


def fit(name, source, out=None, resume=False, steps=4, **settings):
    torch.manual_seed(0)
    method = method_class(name)(**{**COMMON, **SOON.get(name, {}), **settings}, steps=steps)
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "out": out, "resume": resume}
    return od.fit(method, source, **given, seed=3, device="cpu", progress=False)


def losses(run):
    return torch.tensor([row["loss"] for row in run.history if "loss" in row])


@pytest.mark.parametrize("precision", HALVES)
def test_layers_work_in_16_bits_and_what_they_give_is_in_32(tiny, tiny_net, precision):
    network = replace(own_network(tiny_net, "pool"), half=HALVES[precision])
    kinds = []
    tiny_net.head.register_forward_hook(lambda _layer, _inputs, output: kinds.append(output.dtype))
    logits, z = network.embed(tiny.batch(range(4)).images)
    assert kinds == [HALVES[precision]]
    assert (logits.dtype, z.dtype) == (torch.float32, torch.float32)
    exact = own_network(tiny_net.eval(), "pool")(tiny.batch(range(4)).images)
    rough = replace(own_network(tiny_net, "pool"), half=HALVES[precision])(tiny.batch(range(4)).images)
    assert 0 < (rough - exact).abs().max() < 0.02


@pytest.mark.parametrize("name", method_names())
def test_every_method_learns_in_bfloat16_nearly_what_it_learns_in_full(tiny, name):
    exact, rough = (fit(name, tiny, precision=each) for each in ("float32", "bfloat16"))
    assert not torch.equal(losses(exact), losses(rough))
    assert losses(rough) == pytest.approx(losses(exact), rel=0.02)
    assert rough.network.module.head.weight.dtype == torch.float32
    answers = [run.predict(tiny.images).probabilities for run in (exact, rough)]
    assert answers[0] == pytest.approx(answers[1], abs=0.05)


@pytest.mark.parametrize(("precision", "scale", "near"), [("bfloat16", 1.0, 0.1), ("float16", SCALE, 0.01)])
def test_the_second_order_is_there_in_16_bits(tiny, precision, scale, near):
    torch.manual_seed(0)
    module = SmoothNet()
    batch, other = tiny.batch(range(12)), tiny.batch(range(12, 30))

    def gradient(half, scale=1.0, second_order=True):
        meta = meta_gradient(
            module,
            lambda model: batch_losses(model, [batch], half=half),
            lambda model: batch_losses(model, [other], half=half),
            rate=2.0,  # large, so that the curvature shows
            second_order=second_order,
            scale=scale,
        )
        return torch.cat([each.flatten() / scale for each in meta.gradients.values()])

    exact, first_order = gradient(None), gradient(None, second_order=False)
    rough = gradient(HALVES[precision], scale)
    assert (rough - exact).norm() < near * exact.norm()
    assert (first_order - exact).norm() > 3 * near * exact.norm()


def test_a_step_whose_gradients_leave_the_range_of_float16_is_left_out():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    head = nn.Linear(2, 1)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.1)
    before = head.weight.detach().clone()
    descend(optimiser, head(torch.full((1, 2), 1e38)).sum(), scaler)
    assert torch.equal(head.weight, before)
    assert scaler.get_scale() == 2.0**7
    descend(optimiser, head(torch.ones(1, 2)).sum(), scaler)
    assert head.weight.detach() == pytest.approx(before - 0.1)


def test_float16_resumes_to_the_bit_with_its_scale(tiny, tmp_path, monkeypatch):
    settings = {"precision": "float16", "checkpoint_every": 2, "steps": 6}
    whole = fit("sdg", tiny, tmp_path / "whole", **settings)
    step = SDG.step

    def killed(self, batch, number):
        if number == 3:
            raise KeyboardInterrupt
        return step(self, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(SDG, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            fit("sdg", tiny, tmp_path / "killed", **settings)
    resumed = fit("sdg", tiny, tmp_path / "killed", resume=True, **settings)
    assert resumed.method.scaler.state_dict() == whole.method.scaler.state_dict()
    assert whole.method.scaler.get_scale() < 2.0**16  # some step was left out: the scale is no longer the first one
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name])


def test_a_checkpoint_with_a_scale_that_is_none_is_refused(tiny, tmp_path):
    settings = {"precision": "float16", "steps": 2}
    fit("erm", tiny, tmp_path / "run", **settings)
    path = tmp_path / "run" / "checkpoint.pt"
    state = load_checkpoint(path)
    save_checkpoint(path, {**state, "scaler": {**state["scaler"], "scale": "much"}})
    with pytest.raises(od.UserError, match="scaler.scale is a str"):
        fit("erm", tiny, tmp_path / "run", resume=True, **settings)
