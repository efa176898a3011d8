"""What the methods do that SDG is compared with: each one's effect on a tiny problem, and what all of them promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.components.augmentations.movement import moved
from onedomain.components.contrastive import contrastive_loss, nearest_other_loss, squared_distances
from onedomain.components.equations import task_loss
from onedomain.components.predictive import divergence_from_mean
from onedomain.data.domain import Domain
from onedomain.methods import method_class, method_names
from onedomain.training.loop import BalancedBatches
from tests.conftest import TinyNet, make_tiny
from tests.methods.compared import NAMES, QUICK, begun, fit


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_on_ones_own_network_and_data(name):
    tiny = make_tiny(60)
    run = fit(name, tiny, steps=80)
    assert run.evaluate({"same": tiny})["same"].accuracy > 0.8
    assert run.history[-1]["loss"] < run.history[0]["loss"]


@pytest.mark.parametrize("name", NAMES)
def test_killed_and_resumed_it_ends_with_the_same_bits(name, tiny, tmp_path, monkeypatch):
    fit(name, tiny, steps=12, out=tmp_path / "whole")
    kind = method_class(name)
    original, calls = kind.step, 0

    def killed(self, batch, step):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return original(self, batch, step)

    monkeypatch.setattr(kind, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(name, tiny, steps=12, out=tmp_path / "killed")
    monkeypatch.setattr(kind, "step", original)
    fit(name, tiny, steps=12, out=tmp_path / "killed", resume=True)
    assert_same_files(tmp_path)


def assert_same_files(folder):
    names = {file.relative_to(folder / "whole") for file in (folder / "whole").rglob("*") if file.is_file()}
    for name in names:
        if name.suffix in (".safetensors", ".npy"):
            assert (folder / "whole" / name).read_bytes() == (folder / "killed" / name).read_bytes(), name


@pytest.mark.parametrize("moment", [1, 2, 4])
def test_an_ensemble_killed_inside_a_round_goes_on_to_the_same_bits(tiny, tmp_path, monkeypatch, moment):
    monkeypatch.setattr("onedomain.training.loop.SECONDS_BETWEEN_SAVED_PARTS", -1.0)  # save after every part
    monkeypatch.setattr("onedomain.components.augmented_domains.BATCH", 10)
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
def test_the_loss_over_pairs_falls_and_so_does_what_it_holds_together(name, loss, margin):
    """CCSA: distances in a class. d-SNE: by how much the farthest of the own class exceeds the nearest of another."""
    tiny = make_tiny(60)

    def measured(weight):
        run = fit(name, tiny, steps=60, weight=weight, margin=margin)
        run.network.module.eval()
        _, z = run.network.embed(tiny.batch(range(60)).images)
        z, labels = z.flatten(1), torch.from_numpy(tiny.labels)
        same = torch.from_numpy(tiny.labels[:, None] == tiny.labels[None])
        distances = squared_distances(z, z)
        farthest, nearest = distances.where(same, 0.0).amax(1), distances.masked_fill(same, torch.inf).amin(1)
        held = distances[same] if name == "ccsa" else farthest - nearest
        return loss(z, labels, margin).item(), held.mean().item()

    (with_pairs, near), (without, far) = measured(0.5), measured(0.0)
    assert with_pairs < 0.8 * without
    assert near < far


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
    with pytest.raises(od.UserError, match=f"method: {name} needs one label per image"):
        fit(name, dense, steps=1)


def test_jigen_refuses_images_that_nine_tiles_do_not_fit_into():
    small = Domain("small", "train", np.zeros((6, 2, 8, 1), np.uint8), np.arange(6) % 2, "ab")
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.Linear(4, 2))
    with pytest.raises(od.UserError, match="images: 2×8 pixels; allowed: at least 3×3"):
        od.fit(od.JiGen(), small, network=network, embedding="1", progress=False)


def test_jigen_learns_the_order_and_the_class_loss_is_of_ordered_images_alone(tiny):
    run = fit("jigen", tiny, steps=150, permutations=3)
    assert run.history[-1]["puzzle"] < 0.8 * run.history[0]["puzzle"]
    method = begun("jigen", tiny, shuffled=0.999)
    torch.manual_seed(0)
    assert method.losses(tiny.batch(range(12)))["task"].item() == 0.0


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
def test_every_method_says_what_it_does_and_where_it_is_from(name):
    kind = method_class(name)
    assert kind.summary
    assert kind.citation
    assert kind.cost is None or kind.cost >= 1  # measured by `python -m bench methods`
