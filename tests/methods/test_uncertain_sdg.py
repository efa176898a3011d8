"""Algorithm 2: its gradients, its adversary, and what its settings do."""

from __future__ import annotations

import math

import pytest
import torch

import onedomain as od
from onedomain.components.equations import task_loss
from onedomain.components.meta import Model
from onedomain.data.domain import Batch
from onedomain.methods.uncertain_sdg import UncertainSDG
from onedomain.networks.hooks import added, watched
from tests.conftest import TinyNet
from tests.methods.uncertain import QUICK, SmoothNet, begun


def slow_objectives(method, batch, rate):
    """Algorithm 2 in its textbook form: one pass for each domain and kind, one graph for everything."""
    module, settings = method.network.module, method.settings
    theta = dict(module.named_parameters())
    with watched(method.noisy) as seen:
        source = task_loss(module(batch.images), batch.labels).mean()
    z = seen.z.detach()
    torch.manual_seed(1)
    made = method._make(batch, method._noise(seen.inputs))
    inner = torch.autograd.grad(source, list(theta.values()), create_graph=True)
    theta_hat = {name: p - rate * g for (name, p), g in zip(theta.items(), inner, strict=True)}
    total, climbed = source, 0.0
    for kind, weight in enumerate(made.weights):
        for k in range(settings.domains):
            offsets = [offset[k : k + 1] for offset in made.offsets]
            with added(method.noisy, offsets, made.share[kind, k].view(1, 1, -1)), watched(method.noisy) as seen:
                logits = torch.func.functional_call(module, theta_hat, (batch.images,))
            losses = -(made.labels[kind, k] * logits.log_softmax(1)).sum(1)
            total = total + weight * losses.mean()
            top = settings.ceiling * math.log(3) or math.inf
            climbed = climbed + weight * sum(loss if loss < top else 2 * top - loss for loss in losses) / len(losses)
            climbed = climbed - settings.alpha * weight * (seen.z - z).square().mean(1).mean()
    return total, climbed


@pytest.mark.parametrize("domains", [1, 3])
@pytest.mark.parametrize("weights", [(1.0, 0.5), (0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("ours", [{}, {"image": True, "ceiling": 1.0}])
def test_a_step_follows_the_gradients_of_the_textbook_and_of_differences(tiny, domains, weights, ours, monkeypatch):
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)  # labels in the precision of the test
    settings = {"perturbed_weight": weights[0], "mixup_weight": weights[1], "domains": domains, **ours}
    method = begun(SmoothNet(), tiny, double=True, inner_rate=0.5, **settings)
    module = method.network.module
    batch = tiny.batch(range(12))
    batch = Batch(batch.images.double(), batch.labels)
    total, climbed = slow_objectives(method, batch, 0.5)
    by_theta = torch.autograd.grad(total, list(module.parameters()), retain_graph=True)
    by_phi = torch.autograd.grad(climbed, list(method.phi.parameters()), allow_unused=True, materialize_grads=True)
    weight = next(method.phi.mu[0].parameters())
    sides = []
    for shift in (1e-5, -1e-5):
        with torch.no_grad():
            weight.view(-1)[3] += shift
        sides.append(slow_objectives(method, batch, 0.5)[1].item())
        with torch.no_grad():
            weight.view(-1)[3] -= shift
    method.optimiser = torch.optim.SGD(module.parameters(), lr=0.0)
    method.climber = torch.optim.SGD(method.phi.parameters(), lr=0.0, maximize=True)
    torch.manual_seed(1)
    logged = method.step(batch, 0)
    for parameter, expected in zip(module.parameters(), by_theta, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-10)
    for parameter, expected in zip(method.phi.parameters(), by_phi, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-10)
    if weights[1] == 0:  # a seeded Beta sampler is not smooth in a and b: its gradient is tested on its own
        assert weight.grad.view(-1)[3].item() == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-8)
    assert float(logged["loss"]) == pytest.approx(total.item(), abs=1e-10)
    reaches_mixer = method.phi.mixer.weight.grad.abs().sum() > 0
    assert reaches_mixer == (weights[1] > 0)


def test_above_the_ceiling_a_sample_is_made_easier_instead_of_harder(tiny):
    """Two samples, one beyond the ceiling: its loss counts as much below it as it lies above."""
    method = begun(SmoothNet(), tiny, ceiling=0.5, alpha=2.0, mixup_weight=0.0)
    made = method._make(tiny.batch([0, 1]), method._noise([torch.rand(2, 1, 8, 8), torch.rand(2, 144)]))
    losses = torch.tensor([[[0.5, 0.6]]])  # half of ln 3 is 0.549
    distances = torch.tensor([[[0.01, 0.03]]])
    mirrored = math.log(3) - 0.6
    assert method._climbed(made, losses, distances).item() == pytest.approx((0.5 + mirrored) / 2 - 2 * 0.04 / 2)


def test_the_image_and_the_layers_are_climbed_at_rates_of_their_own(tiny):
    method = begun(SmoothNet(), tiny, image=True, image_rate=0.5, adversary_rate=0.02)
    rates = {id(group["params"][0]): group["lr"] for group in method.climber.param_groups}
    of_image, of_conv = (dict(method.phi.mu[place].named_parameters()) for place in (0, 1))
    assert [rates[id(p)] for p in of_image.values()] == [pytest.approx(0.5 / 9), 0.5]  # nine inputs a weight
    assert [rates[id(p)] for p in of_conv.values()] == [pytest.approx(0.02 / 9), 0.02]
    assert rates[id(method.phi.mixer.bias)] == 0.02


def test_noise_of_the_image_is_a_layer_more_that_phi_learns(tiny):
    """With it φ has a twin more, φm reads the same layer as without it, and the adversary moves the image's noise."""
    plain, method = (begun(SmoothNet(), tiny, image=image) for image in (False, True))
    assert method.phi.mixer.weight.shape == plain.phi.mixer.weight.shape
    beside = method.training_parameters - plain.training_parameters
    assert beside == 2 * (1 * 1 * 3 * 3 + 1)  # 3×3 convolutions from one channel to one, for μ and log σ²
    before = [parameter.detach().clone() for parameter in method.phi.mu[0].parameters()]
    method.step(tiny.batch(range(12)), 0)
    moved = zip(before, method.phi.mu[0].parameters(), strict=True)
    assert all((new - old).abs().min() > 0 for old, new in moved)


def test_with_theta_fixed_the_adversary_makes_the_domains_harder(tiny):
    torch.manual_seed(0)
    method = begun(SmoothNet(), tiny, adversary="burst", burst_updates=20, alpha=0.0, adversary_rate=0.5)
    batch = tiny.batch(range(60))
    for _ in range(60):
        method.step(batch, 1000)  # after the burst
    module = method.network.module
    before = {name: value.clone() for name, value in module.state_dict().items()}

    def hardness():
        model = Model(module, {}, {})
        with torch.no_grad(), watched(method.noisy) as seen:
            model(batch.images)
        torch.manual_seed(2)
        with torch.no_grad():
            made = method._make(batch, method._noise(seen.inputs))
            return made.weighed(method._meta_test(model, batch, made, seen.z)[0]).sum().item()

    easy = hardness()
    method._climb_alone(batch)
    assert hardness() > 1.2 * easy
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_the_constraint_holds_the_adversary_back(tiny):
    carried = {}
    for alpha in (0.0, 20.0):
        torch.manual_seed(0)
        method = begun(SmoothNet(), tiny, adversary="burst", burst_updates=30, alpha=alpha, adversary_rate=0.5)
        batch = tiny.batch(range(60))
        method._climb_alone(batch)
        with torch.no_grad(), watched(method.noisy) as seen:
            method.network(batch.images)
        torch.manual_seed(2)
        made = method._make(batch, method._noise(seen.inputs))
        distances = method._meta_test(Model(method.network.module, {}, {}), batch, made, seen.z)[1]
        carried[alpha] = made.weighed(distances).item()
    assert carried[20.0] < 0.5 * carried[0.0]


def test_the_curriculum_grows_and_phi_changes(tiny):
    torch.manual_seed(0)
    run = od.fit(
        UncertainSDG(**{**QUICK, "mixup_weight": 1.0, "adversary_rate": 0.03, "alpha": 0.01, "prediction_draws": 0}),
        tiny,
        network=TinyNet(),
        embedding="pool",
        perturb=["conv"],
        steps=150,
        progress=False,
    )
    rows = [row for row in run.history if "perturbation" in row]
    assert rows[-1]["perturbation"] > 1.1 * rows[0]["perturbation"]
    assert rows[-1]["smoothness"] > rows[0]["smoothness"]
    torch.manual_seed(0)
    untrained = od.fit(
        UncertainSDG(**QUICK),
        tiny,
        network=TinyNet(),
        embedding="pool",
        perturb=["conv"],
        steps=2,  # the warm-up alone
        progress=False,
    )
    before = dict(untrained.method.phi.named_parameters())
    for name, parameter in run.method.phi.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8


def test_what_the_adversary_setting_does(tiny):
    def moved(**settings):
        torch.manual_seed(0)
        method = begun(SmoothNet(), tiny, alpha=0.0, mixup_weight=0.0, **settings)
        method.climber = torch.optim.SGD(method.phi.parameters(), 100.0, maximize=True)
        method.phi_optimiser = torch.optim.SGD(method.phi.parameters(), 100.0)
        before = method.phi.mu[0].bias.detach().clone()
        directions = []
        for at in (0, 1, 2, 3):
            torch.manual_seed(3)
            method.step(tiny.batch(range(12)), at)
            directions.append((method.phi.mu[0].bias.detach() - before).sign())
            before = method.phi.mu[0].bias.detach().clone()
        return directions

    up, down, both = (moved(adversary=name) for name in ("throughout", "none", "alternate"))
    assert torch.equal(up[0], -down[0])
    assert torch.equal(both[0], up[0])
    assert not torch.equal(both[1], both[0])
    frozen = moved(uncertainty=False)
    assert all((direction == 0).all() for direction in frozen)


@pytest.mark.parametrize(
    ("settings", "climbs"),
    [
        ({"adversary": "burst"}, [0, 1, 1, 0]),
        ({"adversary": "throughout"}, [0] * 4),
        ({"adversary": "burst", "uncertainty": False}, [0] * 4),
    ],
)
def test_phi_climbs_alone_from_the_end_of_the_warm_up_to_that_of_the_bursts(tiny, monkeypatch, settings, climbs):
    calls = 0

    def counted(self, batch):
        nonlocal calls
        calls += 1

    monkeypatch.setattr(UncertainSDG, "_climb_alone", counted)
    method = begun(SmoothNet(), tiny, warm_up=4, burst_steps=3, **settings)
    found = []
    for at in (3, 4, 6, 7):
        calls = 0
        method.step(tiny.batch(range(12)), at)
        found.append(calls)
    assert found == climbs


def test_phi_starts_from_the_seed_and_waits_for_the_warm_up(tiny):
    def phi(steps):
        torch.manual_seed(0)
        given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": steps, "progress": False}
        return od.fit(UncertainSDG(**QUICK), tiny, **given).method.phi.state_dict()

    one, three, four = phi(1), phi(3), phi(4)
    assert all(torch.equal(one[name], three[name]) for name in one)
    assert not torch.equal(three["mixer.weight"], four["mixer.weight"])
