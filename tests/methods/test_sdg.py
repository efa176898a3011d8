from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.sdg import SDG
from onedomain.networks import own_network
from tests.conftest import TinyNet, make_tiny, set_up

CPU = torch.device("cpu")
QUICK = {
    "warm_up": 4,
    "domain_every": 3,
    "domain_size": 30,
    "wae_epochs": 2,
    "batch_size": 12,
    "augmented_batch": 12,
    "ascent_steps": 5,
    "learning_rate": 1e-2,
}


class SmoothNet(nn.Module):
    """A network without kinks or BatchNorm, so that gradients can be compared with differences."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh())
        self.head = nn.Linear(8, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def begun(module, embedding, source, folder=None, **settings):
    method = SDG(**{**QUICK, **settings})
    torch.manual_seed(0)
    return set_up(method, own_network(module, embedding=embedding), source, seed=1, folder=folder)


def make_domains(method):
    """All K domains at once, without the steps between them."""
    while len(method.augmentation.domains) < method.settings.domains:
        list(method.prepare(10**6))
    return method.augmentation.domains


def test_domains_are_made_one_after_another_when_they_are_due(tiny):
    method = begun(SmoothNet(), "features", tiny)
    made = []
    for step in range(12):
        list(method.prepare(step))
        method.step(tiny.batch(range(12)), step)
        made.append(len(method.augmentation.domains))
    assert made == [0] * 4 + [1] * 3 + [2] * 3 + [3] * 2
    assert [len(domain) for domain in method.augmentation.domains] == [30] * 3


@pytest.mark.parametrize("relax", ["input", "reconstruction"])
def test_the_ascent_raises_its_objective_moves_far_and_stays_near(tiny, relax):
    torch.manual_seed(0)
    module = SmoothNet()
    settings = {"relax": relax, "ascent_steps": 20, "ascent_rate": 0.02, "range_margin": 0.0, "wae_epochs": 60}
    method = begun(module, "features", tiny, **settings)
    for _ in range(30):
        method.step(tiny.batch(range(60)), 0)
    batch = tiny.batch(range(60))
    method.wae = method._new_wae(1)
    while method.wae.steps_done < method.wae.steps_total:
        method.wae.step()
    moved = method._climb(batch)
    v = method.wae.auto_encoder
    with torch.no_grad():
        z, z_plus = module.features(batch.images), module.features(moved)

        def objective(x):
            task = task_loss(module(x), batch.labels)
            constraint = (module.features(x) - z).square().mean(1)
            known = x if relax == "input" else v(batch.images)
            return task - constraint + 2000 * (known - v(x)).square().flatten(1).mean(1)

        assert (objective(moved) > objective(batch.images)).all()
    assert (moved - batch.images).abs().mean() > 0.02
    assert moved.min() >= 0
    assert moved.max() <= 1
    loose = begun(module, "features", tiny, **settings, alpha=0.0)
    loose.wae = method.wae
    far = module.features(loose._climb(batch))
    assert (z_plus - z).square().sum() < (far - z).square().sum()


@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_images_do_not_depend_on_the_batch_size(tiny, size):
    method = begun(TinyNet(), "pool", tiny, beta=0.0)
    whole = method._climb(tiny.batch(range(60)))
    parts = [method._climb(tiny.batch(range(start, min(60, start + size)))) for start in range(0, 60, size)]
    assert torch.allclose(whole, torch.cat(parts), atol=1e-6)


def test_the_ascent_leaves_weights_gradients_and_statistics_alone(tiny):
    module = TinyNet()
    method = begun(module, "pool", tiny)
    before = copy.deepcopy(module.state_dict())
    make_domains(method)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.grad is None and parameter.requires_grad for parameter in module.parameters())


@pytest.mark.parametrize("relax", ["input", "reconstruction"])
def test_with_relaxation_domains_are_carried_farther_in_input_space(tiny, relax):
    def moved(beta):
        torch.manual_seed(0)
        method = begun(SmoothNet(), "features", tiny, beta=beta, domains=1, relax=relax, wae_epochs=60, ascent_rate=0.1)
        parts = list(method.prepare(4))
        name, measured = parts[-1].record
        assert name == "augmented-1"
        return measured["w_d"]

    assert moved(2000.0) > 1.5 * moved(0.0)


def meta_loss(module, source, domains, rate):
    """Eq. 9 in its slow textbook form, a function of θ that can be differentiated by differences."""
    theta = dict(module.named_parameters())
    loss = task_loss(module(source.images), source.labels).mean()
    gradients = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
    theta_hat = {name: p - rate * g for (name, p), g in zip(theta.items(), gradients, strict=True)}
    for domain in domains:
        logits = torch.func.functional_call(module, theta_hat, (domain.images,))
        loss = loss + task_loss(logits, domain.labels).mean()
    return loss


def drawn(method, monkeypatch):
    batches = [domain.batch(range(6)) for domain in method.augmentation.domains]
    batches = [Batch(batch.images.double(), batch.labels) for batch in batches]
    monkeypatch.setattr(method, "_draw", lambda: batches)
    return batches


def test_a_step_follows_the_meta_gradient(tiny, monkeypatch):
    module = SmoothNet()
    method = begun(module, "features", tiny, domains=2, inner_rate=0.5)
    make_domains(method)
    module.double()
    batches = drawn(method, monkeypatch)
    source = Batch(tiny.batch(range(12)).images.double(), tiny.batch(range(12)).labels)
    weight = module.head.weight
    expected = torch.autograd.grad(meta_loss(module, source, batches, 0.5), weight)[0]
    by_differences = torch.zeros_like(weight)
    for place in range(weight.numel()):
        values = []
        for shift in (1e-5, -1e-5):
            with torch.no_grad():
                weight.view(-1)[place] += shift
            values.append(meta_loss(module, source, batches, 0.5).item())
            with torch.no_grad():
                weight.view(-1)[place] -= shift
        by_differences.view(-1)[place] = (values[0] - values[1]) / 2e-5
    method.optimiser = torch.optim.SGD(module.parameters(), lr=0.0)
    logged = method.step(source, 0)
    assert torch.allclose(weight.grad, expected, atol=1e-12)
    assert torch.allclose(weight.grad, by_differences, atol=1e-7)
    assert float(logged["loss"]) == pytest.approx(meta_loss(module, source, batches, 0.5).item(), abs=1e-12)


def test_first_order_no_meta_and_second_order_are_three_different_gradients(tiny, monkeypatch):
    gradients = {}
    for name, settings in {"exact": {}, "first": {"second_order": False}, "plain": {"meta": False}}.items():
        torch.manual_seed(0)
        module = SmoothNet()
        method = begun(module, "features", tiny, domains=1, inner_rate=0.5, **settings)
        make_domains(method)
        module.double()
        batches = drawn(method, monkeypatch)
        source = Batch(tiny.batch(range(12)).images.double(), tiny.batch(range(12)).labels)
        method.optimiser = torch.optim.SGD(module.parameters(), lr=0.0)
        method.step(source, 0)
        gradients[name] = module.head.weight.grad.clone()
    total = task_loss(module(source.images), source.labels).mean()
    total = total + task_loss(module(batches[0].images), batches[0].labels).mean()
    assert torch.allclose(gradients["plain"], torch.autograd.grad(total, module.head.weight)[0], atol=1e-12)
    assert not torch.allclose(gradients["exact"], gradients["first"], atol=1e-4)
    assert not torch.allclose(gradients["first"], gradients["plain"], atol=1e-4)


@pytest.mark.parametrize("meta", [True, False])
def test_running_statistics_are_moved_by_the_source_alone_once_a_step(tiny, meta):
    module = TinyNet()
    method = begun(module, "pool", tiny, meta=meta)
    make_domains(method)
    alone = copy.deepcopy(module).train()
    batch = tiny.batch(range(12))
    alone(batch.images)
    module.train()  # as the loop does
    method.step(batch, 0)
    assert module.norm.num_batches_tracked == 1
    assert torch.allclose(module.norm.running_mean, alone.norm.running_mean, atol=1e-6)
    assert torch.allclose(module.norm.running_var, alone.norm.running_var, atol=1e-6)


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    ("moment", "retrain"),
    [
        *((moment, "afresh") for moment in (1, 3, 4, 6, 7, 11, 13, 14)),
        *((6, "on"), (8, "on"), (6, "never"), (10, "never")),
    ],
)
def test_killed_while_a_domain_is_made_and_resumed_it_ends_with_the_same_bits(
    tmp_path, tiny, moment, retrain, monkeypatch
):
    monkeypatch.setattr("onedomain.training.loop.SECONDS_BETWEEN_SAVED_PARTS", -1.0)  # save after every part
    monkeypatch.setattr("onedomain.components.augmented_domains.BATCH", 10)
    settings = {**QUICK, "checkpoint_every": 1, "wae_epochs": 10, "retrain": retrain}

    def fit(folder, resume=False):
        torch.manual_seed(3)
        od.fit(
            SDG(**settings),
            tiny,
            network=TinyNet(),
            embedding="pool",
            steps=14,
            out=folder,
            resume=resume,
            progress=False,
        )

    fit(tmp_path / "whole")
    prepare, parts = SDG.prepare, 0

    def interrupted(self, step):
        nonlocal parts
        for part in prepare(self, step):
            yield part
            parts += 1
            if parts == moment:
                raise Killed

    monkeypatch.setattr(SDG, "prepare", interrupted)
    with pytest.raises(Killed):
        fit(tmp_path / "killed")
    fit(tmp_path / "killed", resume=True)
    for name in ("model.safetensors", *(f"augmented/augmented-{k}.npy" for k in (1, 2, 3))):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    domains = [
        [
            row
            for row in map(json.loads, (tmp_path / kind / "metrics.jsonl").read_text().splitlines())
            if "domain" in row
        ]
        for kind in ("killed", "whole")
    ]
    assert domains[0] == domains[1]
    assert [row["domain"] for row in domains[0]] == ["augmented-1", "augmented-2", "augmented-3"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"beta": 0.0},
        {"alpha": 0.0},
        {"meta": False},
        {"prior": "mmd"},
        {"auto_encoder": "conv"},
        {"wae_loss": "cross-entropy"},
        {"domain_losses": "mean"},
        {"retrain": "on"},
        {"retrain": "never"},
    ],
)
def test_it_trains_on_ones_own_network_and_data(settings):
    tiny = make_tiny(60)
    torch.manual_seed(0)
    method = od.SDG(**{**QUICK, "steps": 60, **settings})
    run = od.fit(method, tiny, network=TinyNet(), embedding="pool", progress=False)
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8
    records = run.records(run.evaluate({"same": tiny}))
    transport = {(row["domain"], row["metric"]) for row in records if row["domain"].startswith("augmented")}
    assert transport == {(f"augmented-{k}", metric) for k in (1, 2, 3) for metric in ("w_c", "w_d")}


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_images_keep_to_the_range_of_the_source_widened_by_the_margin(margin):
    tiny = make_tiny(60)
    images = tiny.images.astype(np.float32) / 50 - 2
    domain = od.Domain("normalised", "train", images, tiny.labels, tiny.classes)
    method = begun(SmoothNet(), "features", domain, domains=1, relax="input", ascent_rate=0.5, range_margin=margin)
    [made] = make_domains(method)
    room = margin * (images.max() - images.min())
    assert made.images.min() == pytest.approx(images.min() - room, abs=4e-3)
    assert made.images.max() == pytest.approx(images.max() + room, abs=4e-3)


def test_a_network_without_a_named_embedding_is_refused_before_anything_is_written(tiny, tmp_path):
    with pytest.raises(od.UserError, match="embedding: your network's embedding layer is not named"):
        od.fit(od.SDG(**QUICK), tiny, network=TinyNet(), steps=8, out=tmp_path / "a", progress=False)
    assert not list(tmp_path.iterdir())


def test_v_is_started_afresh_trained_on_or_kept(tiny):
    def trainings(retrain):
        method = begun(SmoothNet(), "features", tiny, domains=3, retrain=retrain, wae_epochs=20)
        seen = []
        for _ in range(3):
            for _ in method.prepare(100):
                if method.wae is not None and (not seen or seen[-1][0] is not method.wae):
                    seen.append((method.wae, method.wae.auto_encoder, method.wae.images.name))
        return seen

    afresh, on, kept = (trainings(way) for way in ("afresh", "on", "never"))
    assert [name for _, _, name in afresh] == [name for _, _, name in on] == ["tiny", "augmented-1", "augmented-2"]
    assert len({id(v) for _, v, _ in afresh}) == 3
    assert len({id(v) for _, v, _ in on}) == 1
    assert [name for _, _, name in kept] == ["tiny"]
