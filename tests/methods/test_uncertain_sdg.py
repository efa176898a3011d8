from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.data.domain import Batch, Domain
from onedomain.equations import task_loss
from onedomain.meta import Model
from onedomain.methods.uncertain_sdg import UncertainSDG
from onedomain.networks import own_network
from onedomain.networks.hooks import added, watched
from tests.conftest import TinyNet, make_tiny

QUICK = {
    "batch_size": 12,
    "warm_up": 3,
    "learning_rate": 1e-2,
    "log_every": 5,
    "burst_steps": 2,
    "burst_updates": 3,
    "perturbed_weight": 1.0,
    "mixup_weight": 0.01,
}


class SmoothNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Softplus(), nn.Flatten(), nn.Linear(4 * 36, 6), nn.Tanh())
        self.head = nn.Linear(6, 3)

    def forward(self, images):
        return self.head(self.features(images))


def begun(module, source, layers=("features.0", "features.3"), embedding="features", double=False, **settings):
    torch.manual_seed(0)
    method = UncertainSDG(**{**QUICK, "warm_up": 0, **settings})
    if double:
        module.double()
    method.attach(own_network(module, embedding, layers), torch.device("cpu"))
    method.build(torch.rand(3, 1, 8, 8, dtype=torch.float64 if double else torch.float32))
    if double:
        method.phi.double()
    method.begin(source)
    list(method.prepare(5))
    return method


def slow_objectives(method, batch, rate):
    """Algorithm 2 in its textbook form: one pass for each domain and kind, one graph for everything."""
    module, settings = method.network.module, method.settings
    theta = dict(module.named_parameters())
    with watched(method.network) as seen:
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
            with added(method.network, offsets, made.share[kind, k].view(1, 1, -1)), watched(method.network) as seen:
                logits = torch.func.functional_call(module, theta_hat, (batch.images,))
            loss = weight * -(made.labels[kind, k] * logits.log_softmax(1)).sum(1).mean()
            total = total + loss
            climbed = climbed + loss - settings.alpha * weight * (seen.z - z).square().mean(1).mean()
    return total, climbed


@pytest.mark.parametrize("domains", [1, 3])
@pytest.mark.parametrize("weights", [(1.0, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_a_step_follows_the_gradients_of_the_textbook_and_of_differences(tiny, domains, weights, monkeypatch):
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)  # labels in the precision of the test
    settings = {"perturbed_weight": weights[0], "mixup_weight": weights[1], "domains": domains}
    method = begun(SmoothNet(), tiny, double=True, inner_rate=0.5, **settings)
    module = method.network.module
    batch = tiny.batch(range(12))
    batch = Batch(batch.images.double(), batch.labels)
    total, climbed = slow_objectives(method, batch, 0.5)
    by_theta = torch.autograd.grad(total, list(module.parameters()), retain_graph=True)
    by_phi = torch.autograd.grad(climbed, list(method.phi.parameters()), allow_unused=True, materialize_grads=True)
    weight = method.phi.mu[0].weight
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
    logged = method.step(batch)
    for parameter, expected in zip(module.parameters(), by_theta, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-10)
    for parameter, expected in zip(method.phi.parameters(), by_phi, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-10)
    if weights[1] == 0:  # a seeded Beta sampler is not smooth in a and b: its gradient is tested on its own
        assert weight.grad.view(-1)[3].item() == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-8)
    assert float(logged["loss"]) == pytest.approx(total.item(), abs=1e-10)
    reaches_mixer = method.phi.mixer.weight.grad.abs().sum() > 0
    assert reaches_mixer == (weights[1] > 0)


def test_with_theta_fixed_the_adversary_makes_the_domains_harder(tiny):
    torch.manual_seed(0)
    method = begun(SmoothNet(), tiny, adversary="burst", burst_updates=20, alpha=0.0, adversary_rate=0.5)
    batch = tiny.batch(range(60))
    for _ in range(60):
        method.at = 1000  # after the burst
        method.step(batch)
    module = method.network.module
    before = {name: value.clone() for name, value in module.state_dict().items()}

    def hardness():
        model = Model(module, {}, {})
        with torch.no_grad(), watched(method.network) as seen:
            model(batch.images)
        torch.manual_seed(2)
        with torch.no_grad():
            losses, _ = method._meta_test(model, batch, method._make(batch, method._noise(seen.inputs)), seen.z)
        return losses.sum().item()

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
        with torch.no_grad(), watched(method.network) as seen:
            method.network(batch.images)
        torch.manual_seed(2)
        made = method._make(batch, method._noise(seen.inputs))
        carried[alpha] = method._meta_test(Model(method.network.module, {}, {}), batch, made, seen.z)[1].item()
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
    ],
)
def test_it_trains_on_ones_own_network_and_data(settings):
    tiny = make_tiny(60)
    torch.manual_seed(0)
    method = od.UncertainSDG(**{**QUICK, **settings})
    run = od.fit(method, tiny, network=TinyNet(), embedding="pool", perturb=["conv"], steps=60, progress=False)
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8
    assert run.method.training_parameters > run.network.parameter_count


def test_what_the_adversary_setting_does(tiny):
    def moved(**settings):
        torch.manual_seed(0)
        method = begun(SmoothNet(), tiny, alpha=0.0, mixup_weight=0.0, **settings)
        method.climber = torch.optim.SGD(method.phi.parameters(), 100.0, maximize=True)
        method.phi_optimiser = torch.optim.SGD(method.phi.parameters(), 100.0)
        before = method.phi.mu[0].bias.detach().clone()
        directions = []
        for at in (0, 1, 2, 3):
            method.at = at
            torch.manual_seed(3)
            method.step(tiny.batch(range(12)))
            directions.append((method.phi.mu[0].bias.detach() - before).sign())
            before = method.phi.mu[0].bias.detach().clone()
        return directions

    up, down, both = (moved(adversary=name) for name in ("throughout", "none", "alternate"))
    assert torch.equal(up[0], -down[0])
    assert torch.equal(both[0], up[0])
    assert not torch.equal(both[1], both[0])
    frozen = moved(uncertainty=False)
    assert all((direction == 0).all() for direction in frozen)


@pytest.mark.parametrize("moment", [2, 5, 9])
def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path, tiny, moment, monkeypatch):
    settings = {**QUICK, "checkpoint_every": 2, "adversary": "alternate", "mixup_weight": 0.5}

    def fit(folder, resume=False):
        torch.manual_seed(3)
        given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 12, "progress": False}
        return od.fit(UncertainSDG(**settings), tiny, out=folder, resume=resume, **given)

    fit(tmp_path / "whole")
    step = UncertainSDG.step

    def killed(self, batch):
        if self.at == moment:
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(UncertainSDG, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "killed")
    monkeypatch.setattr(UncertainSDG, "step", step)
    fit(tmp_path / "killed", resume=True)
    for name in ("model.safetensors", "auxiliary.safetensors", "calibration.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_predictions_are_the_mean_of_draws_and_the_same_each_time(tmp_path):
    tiny = make_tiny(300)
    torch.manual_seed(0)
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 60, "progress": False}
    run = od.fit(UncertainSDG(**QUICK, prediction_draws=7), tiny, out=tmp_path / "a", **given)
    said = run.method.predictive(tiny.batch(range(40)).images)
    assert said.probabilities.shape == (40, 3)
    assert torch.allclose(said.probabilities.sum(1), torch.ones(40, dtype=torch.float64))
    assert said.statistics.shape == (40, 8)  # μ and σ of four channels
    assert (said.mutual_information >= 0).all()
    assert said.mutual_information.max() > 0
    plain = run.method.predictive(tiny.batch(range(40)).images, draws=0)
    run.network.module.eval()
    assert torch.allclose(plain.probabilities.float(), run.network(tiny.batch(range(40)).images).softmax(1), atol=1e-6)
    p, loaded = run.predict(tiny.images), od.load(tmp_path / "a", network=TinyNet()).predict(tiny.images)
    assert np.array_equal(p.probabilities, loaded.probabilities)
    assert np.array_equal(p.out_of_domain, loaded.out_of_domain)
    alone = run.predict(tiny.images[7:8])
    assert np.allclose(alone.probabilities[0], p.probabilities[7], atol=1e-6)
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


def test_phi_starts_from_the_seed_and_waits_for_the_warm_up(tiny):
    def phi(steps):
        torch.manual_seed(0)
        given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": steps, "progress": False}
        return od.fit(UncertainSDG(**QUICK), tiny, **given).method.phi.state_dict()

    one, three, four = phi(1), phi(3), phi(4)
    assert all(torch.equal(one[name], three[name]) for name in one)
    assert not torch.equal(three["mixer.weight"], four["mixer.weight"])


def test_without_learned_uncertainty_the_domain_is_judged_by_entropy(tiny):
    given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "steps": 20, "progress": False}
    run = od.fit(UncertainSDG(**{**QUICK, "uncertainty": False}), tiny, **given)
    assert run.calibration.mean is None
    p = run.predict(tiny.images)
    assert np.allclose(p.domain_score, p.uncertainty)
    assert run.calibration.threshold > 0


def test_an_embedding_that_the_noise_does_not_reach_is_refused(tiny):
    given = {"network": SmoothNet(), "embedding": "features.0", "perturb": ["features.3"], "progress": False}
    with pytest.raises(od.UserError, match="embedding: 'features.0' does not depend on features.3"):
        od.fit(UncertainSDG(**QUICK), tiny, **given)


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
