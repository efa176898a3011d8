"""What the methods do that SDG is compared with: each one's effect on a tiny problem, and what all of them promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.augmentation.movement import moved
from onedomain.consistency import divergence_from_mean
from onedomain.data.domain import Domain
from onedomain.equations import task_loss
from onedomain.methods import method_class, method_names
from onedomain.methods.me_ada import prediction_entropy
from onedomain.networks import own_network
from onedomain.pairs import contrastive_loss, nearest_other_loss, squared_distances
from onedomain.training import BalancedBatches
from tests.conftest import TinyNet, make_tiny

QUICK = {"batch_size": 12, "learning_rate": 1e-2, "log_every": 5, "checkpoint_every": 2}
SETTINGS = {
    "ccsa": {},
    "d-sne": {},
    "jigen": {"permutations": 5},
    "gud": {"rounds": 2, "round_every": 3, "round_size": 30, "ascent_steps": 2},
    "me-ada": {"rounds": 2, "round_every": 3, "round_size": 30, "ascent_steps": 2},
    "randconv": {},
    "pro-randconv": {"repeats": 3},
    "augmix": {},
    "meta-randconv": {"repeats": 3},
    "moved-randconv": {"repeats": 3},
}


def fit(name, source, steps, resume=False, out=None, **settings):
    torch.manual_seed(3)
    method = method_class(name)(**{**QUICK, **SETTINGS[name], **settings})
    given = {"network": TinyNet(), "embedding": "pool", "steps": steps, "progress": False}
    return od.fit(method, source, out=out, resume=resume, **given)


def begun(name, source, **settings):
    torch.manual_seed(0)
    method = method_class(name)(**{**QUICK, **SETTINGS[name], **settings})
    method.attach(own_network(TinyNet(), "pool"), torch.device("cpu"))
    method.build(source.batch(range(3)).images)
    method.begin(source)
    return method


@pytest.mark.parametrize("name", SETTINGS)
def test_it_learns_on_ones_own_network_and_data(name):
    tiny = make_tiny(60)
    run = fit(name, tiny, steps=80)
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8
    assert run.history[-1]["loss"] < run.history[0]["loss"]


@pytest.mark.parametrize("name", SETTINGS)
def test_killed_and_resumed_it_ends_with_the_same_bits(name, tiny, tmp_path, monkeypatch):
    fit(name, tiny, steps=12, out=tmp_path / "whole")
    kind = method_class(name)
    step, calls = kind.step, 0

    def killed(self, batch):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(kind, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(name, tiny, steps=12, out=tmp_path / "killed")
    monkeypatch.setattr(kind, "step", step)
    fit(name, tiny, steps=12, out=tmp_path / "killed", resume=True)
    assert_same_files(tmp_path)


def assert_same_files(folder):
    names = {file.relative_to(folder / "whole") for file in (folder / "whole").rglob("*") if file.is_file()}
    for name in names:
        if name.suffix in (".safetensors", ".npy"):
            assert (folder / "whole" / name).read_bytes() == (folder / "killed" / name).read_bytes(), name


@pytest.mark.parametrize("moment", [1, 2, 4])
def test_an_ensemble_killed_inside_a_round_goes_on_to_the_same_bits(tiny, tmp_path, monkeypatch, moment):
    monkeypatch.setattr("onedomain.training.SECONDS_BETWEEN_SAVED_PARTS", -1.0)  # save after every part
    monkeypatch.setattr("onedomain.augmented.BATCH", 10)
    fit("gud", tiny, steps=8, out=tmp_path / "whole", gammas="0.1,1")
    prepare, parts = od.GUD.prepare, 0

    def killed(self, step):
        nonlocal parts
        for part in prepare(self, step):
            yield part
            parts += 1
            if parts == moment:
                raise KeyboardInterrupt

    monkeypatch.setattr(od.GUD, "prepare", killed)
    with pytest.raises(KeyboardInterrupt):
        fit("gud", tiny, steps=8, out=tmp_path / "killed", gammas="0.1,1")
    monkeypatch.setattr(od.GUD, "prepare", prepare)
    fit("gud", tiny, steps=8, out=tmp_path / "killed", gammas="0.1,1", resume=True)
    assert (tmp_path / "whole" / "augmented-2" / "augmented-2.npy").exists()
    assert_same_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "loss", "margin"), [("ccsa", contrastive_loss, 1.0), ("d-sne", nearest_other_loss, 20.0)]
)
def test_the_loss_over_pairs_falls_and_distances_in_a_class_shrink(name, loss, margin):
    tiny = make_tiny(60)

    def measured(weight):
        run = fit(name, tiny, steps=60, weight=weight, margin=margin)
        run.network.module.eval()
        _, z = run.network.embed(tiny.batch(range(60)).images)
        z, labels = z.flatten(1), torch.from_numpy(tiny.labels)
        same = torch.from_numpy(tiny.labels[:, None] == tiny.labels[None])
        distances = squared_distances(z)
        return loss(z, labels, margin).item(), distances[same].mean().item()

    (with_pairs, near), (without, far) = measured(0.5), measured(0.0)
    assert with_pairs < 0.8 * without
    assert name == "d-sne" or near < far


def test_batches_hold_all_classes_in_equal_numbers():
    labels = np.array([0] * 50 + [1] * 7 + [2] * 20)
    batches = BalancedBatches(labels, 10, seed=0)
    seen = np.concatenate([batches(step) for step in range(30)])
    counts = [np.bincount(labels[batches(step)], minlength=3) for step in range(30)]
    assert all(np.ptp(count) <= 1 for count in counts)
    assert set(seen) == set(range(77))
    assert np.array_equal(batches(11), BalancedBatches(labels, 10, seed=0)(11))
    assert not np.array_equal(batches(11), BalancedBatches(labels, 10, seed=1)(11))


def test_with_many_classes_a_batch_still_holds_pairs():
    labels = np.arange(200) % 20
    for step in range(12):
        counts = np.bincount(labels[BalancedBatches(labels, 8, seed=0)(step)])
        assert sorted(counts[counts > 0]) == [2, 2, 2, 2]


@pytest.mark.parametrize("name", ["ccsa", "d-sne", "augmix"])
def test_labels_of_pixels_are_refused_where_images_are_compared(name):
    dense = Domain(
        "d", "train", np.zeros((4, 8, 8, 1), np.uint8), np.zeros((4, 8, 8), int) + np.eye(8, dtype=int), "ab"
    )
    with pytest.raises(od.UserError, match=f"method: {name} needs one label an image"):
        fit(name, dense, steps=1)


def test_jigen_learns_the_order_and_the_class_loss_is_of_ordered_images_alone(tiny):
    run = fit("jigen", tiny, steps=150, permutations=3)
    assert run.history[-1]["puzzle"] < 0.8 * run.history[0]["puzzle"]
    method = begun("jigen", tiny, shuffled=0.999)
    torch.manual_seed(0)
    assert method.losses(tiny.batch(range(12)))["task"].item() == 0.0


def test_gud_adds_images_that_are_harder_and_they_are_trained_on(tiny):
    method = begun("gud", tiny, ascent_rate=0.5, ascent_steps=10, gammas=(0.0,), round_size=60)
    for _ in range(30):
        method.network.module.train()
        method.step(tiny.batch(range(60)))
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
        method.step(tiny.batch(range(60)))
    method.network.module.eval()
    with torch.no_grad():
        assert task_loss(method.network(batch.images), batch.labels).mean() < hard


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
            method.step(tiny.batch(range(60)))
        changed = method._climb(0, tiny.batch(range(60)))
        method.network.module.eval()
        entropies[weight] = prediction_entropy(method.network(changed)).mean().item()
    assert entropies[20.0] > entropies[0.0]


@pytest.mark.parametrize("name", ["randconv", "augmix"])
def test_the_consistency_loss_makes_views_agree(name):
    tiny = make_tiny(60)

    def disagreement(weight):
        run = fit(name, tiny, steps=80, consistency=weight)
        run.network.module.eval()
        run.method.source = tiny
        images = tiny.batch(range(60)).images
        torch.manual_seed(5)
        change = run.method.view if name == "randconv" else run.method._mixed
        with torch.no_grad():
            logits = torch.stack([run.network(change(images)) for _ in range(3)])
        return divergence_from_mean(logits).mean().item()

    assert disagreement(10.0) < disagreement(0.0)


def test_pro_randconv_learns_changed_images_that_erm_misses():
    tiny = make_tiny(60)
    scores = {}
    for name in ("pro-randconv", "meta-randconv"):
        run = fit(name, tiny, steps=150)
        assert run.history[-1]["changed"] < run.history[0]["changed"]
        scores[name] = run.history[-1]["changed"]
    erm = od.fit(od.ERM(**QUICK), tiny, network=TinyNet(), steps=150, progress=False)
    method = begun("pro-randconv", tiny)
    torch.manual_seed(1)
    erm.network.module.eval()
    with torch.no_grad():
        changed = torch.cat([method.changed(tiny.batch(range(60))).images for _ in range(5)])
        missed = task_loss(erm.network(changed), torch.from_numpy(tiny.labels).repeat(5)).mean().item()
    assert scores["pro-randconv"] < missed


def test_moved_randconv_learns_shapes_that_pro_randconv_misses():
    """Lying or standing bars, always in the middle: a network without convolutions knows no others."""
    images = np.random.default_rng(0).integers(0, 60, (60, 8, 8, 1))
    images[::2, 3:5] += 150
    images[1::2, :, 3:5] += 150
    bars = Domain("bars", "train", images.astype(np.uint8), np.arange(60) % 2, ("lying", "standing"))
    shift = {"turn": 0.0, "zoom": 0.0, "shear": 0.0, "shift": 0.3}
    torch.manual_seed(2)
    there = [moved(bars.batch(range(60)), **shift) for _ in range(10)]
    elsewhere, labels = (torch.cat(parts) for parts in zip(*there, strict=True))
    missed = {}
    for name, settings in (("pro-randconv", {}), ("moved-randconv", shift)):
        torch.manual_seed(3)
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
        method = method_class(name)(**QUICK, repeats=1, **settings)
        od.fit(method, bars, network=network, steps=600, progress=False)
        with torch.no_grad():
            missed[name] = (network(elsewhere).argmax(1) != labels).float().mean().item()
    assert missed["moved-randconv"] < missed["pro-randconv"] / 3


@pytest.mark.parametrize("name", method_names())
def test_every_method_says_what_it_does_where_it_is_from_and_what_it_costs(name):
    kind = method_class(name)
    assert kind.summary
    assert kind.citation
    assert kind.cost is not None
    assert kind.cost >= 1
