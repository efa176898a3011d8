from __future__ import annotations

import math

import pytest
import torch

from onedomain.errors import UserError
from onedomain.methods.adapt.fada import FADA, balanced, pair_groups, paired
from onedomain.networks import own_network
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny, set_up

SOURCE, TARGET = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 1, 1])


def test_pair_groups_by_hand():
    groups = pair_groups(SOURCE, TARGET)
    # Places 0 to 4 are of the source, 5 to 7 of the target.
    same_source = {(0, 1), (2, 3), (2, 4), (3, 4)}
    same_across = {(0, 5), (1, 5), (2, 6), (2, 7), (3, 6), (3, 7), (4, 6), (4, 7)}
    other_source = {(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)}
    other_across = {(0, 6), (0, 7), (1, 6), (1, 7), (2, 5), (3, 5), (4, 5)}
    assert [set(map(tuple, group.T.tolist())) for group in groups] == [
        same_source,
        same_across,
        other_source,
        other_across,
    ]
    assert [group.shape[1] for group in groups] == [4, 8, 6, 7]


def test_group_sizes_of_a_balanced_batch():
    """Ten classes, four source and two target images of each."""
    groups = pair_groups(torch.arange(10).repeat(4), torch.arange(10).repeat(2))
    assert [group.shape[1] for group in groups] == [10 * 6, 10 * 8, 780 - 60, 800 - 80]
    assert [group.shape[1] for group in balanced(groups)] == [60] * 4


def test_balanced_groups_are_parts_of_the_groups_without_repetition():
    groups = pair_groups(SOURCE, TARGET)
    for group, part in zip(groups, balanced(groups), strict=True):
        chosen = list(map(tuple, part.T.tolist()))
        assert len(set(chosen)) == 4
        assert set(chosen) <= set(map(tuple, group.T.tolist()))
    assert len({str(balanced(groups)[1].T.tolist()) for _ in range(20)}) > 1  # at random


def test_a_pair_is_two_embeddings_side_by_side():
    z = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert paired(z, torch.tensor([[0, 2], [1, 0]])).tolist() == [[1, 2, 3, 4], [5, 6, 1, 2]]


def begun(places=range(21), **settings):
    torch.manual_seed(0)
    method = FADA(**{"batch_size": 12, "steps": 400, "pretrain_steps": 60, "discriminator_steps": 60, **settings})
    source, shots = make_tiny(), make_dim().subset(places)
    set_up(method, own_network(TinyNet(), embedding="pool"), source, shots=shots)
    return method, source, shots


def test_pairs_across_the_domains_are_to_pass_as_pairs_of_the_source_of_their_kind():
    """−log D₁ of group 2 and −log D₃ of group 4, for a discriminator that says 0.1, 0.2, 0.3, 0.4 of every pair."""
    method, _, _ = begun()
    method.discriminator = lambda pairs: torch.tensor([0.1, 0.2, 0.3, 0.4]).log().expand(len(pairs), 4)
    groups = pair_groups(SOURCE, TARGET)
    confusion = method.confusion(torch.randn(8, 2), groups)
    assert confusion.item() == pytest.approx(-math.log(0.1) - math.log(0.3))
    nothing = torch.zeros(2, 0, dtype=torch.long)
    alone = [method.confusion(torch.randn(8, 2), [nothing] * at + [groups[at]] + [nothing] * (3 - at)) for at in (1, 3)]
    assert [each.item() for each in alone] == pytest.approx([-math.log(0.1), -math.log(0.3)])


def steps(method, source, first, last):
    rows = []
    for step in range(first, last):
        method.network.module.train()
        rows.append(method.step(source.batch(torch.randint(60, (12,)).numpy()), step))
    return rows


def told_apart(method, source, shots):
    """How often the discriminator knows a pair across the domains as one, the number of classes aside."""
    method.network.module.eval()
    with torch.no_grad():
        batch, target = source.batch(range(12)), shots.batch(range(12))
        z = method.embed_both(batch, target)[1]
        groups = pair_groups(batch.labels, target.labels)
        across = torch.cat([groups[1], groups[3]], 1)
        return (method.discriminator(paired(z, across)).argmax(1) % 2 == 1).float().mean().item()


def ends(rows, name):
    """The mean of a logged value over the first five steps, and over the last five."""
    return [torch.stack([row[name] for row in part]).mean().item() for part in (rows[:5], rows[-5:])]


def test_the_discriminator_learns_and_the_encoder_then_confuses_it():
    method, source, shots = begun(discriminator_rate=1e-2)
    pretrained = steps(method, source, 0, 60)
    first, last = ends(pretrained, "task")
    assert last < 0.9 * first
    assert "discriminator" not in pretrained[-1]

    weights = method.network.module.head.weight.clone()
    alone = steps(method, source, 60, 120)
    assert torch.equal(method.network.module.head.weight, weights)
    first, last = ends(alone, "discriminator")
    assert abs(first - math.log(4)) < 0.3
    assert last < 0.5 * first
    assert told_apart(method, source, shots) > 0.8

    method.discriminator_optimiser.param_groups[0]["lr"] = 0.0  # it stands still, and the encoder has to move
    fooling = steps(method, source, 120, 220)
    first, last = ends(fooling, "confusion")
    assert last < 0.5 * first
    assert told_apart(method, source, shots) < 0.4
    first, last = ends(fooling, "task")
    assert last < first


def test_without_gamma_nobody_confuses_anything():
    method, source, shots = begun(discriminator_rate=1e-2, gamma=0.0)
    steps(method, source, 0, 120)
    method.discriminator_optimiser.param_groups[0]["lr"] = 0.0
    steps(method, source, 120, 220)
    assert told_apart(method, source, shots) > 0.6


def test_images_beside_a_batch_are_of_its_classes():
    method, source, _ = begun(shots_a_class=3)
    batch = source.batch([0, 2, 3])  # classes 0 and 2
    assert sorted(method.beside(batch).labels.tolist()) == [0, 0, 0, 2, 2, 2]
    method, source, _ = begun(places=[1, 4], shots_a_class=3)  # class 1 alone
    assert method.beside(batch).labels.tolist() == [1, 1]
    losses = steps(method, source, 150, 152)[-1]  # groups may be empty
    assert all(torch.isfinite(value) for value in losses.values())


def test_some_steps_must_be_left_to_adapt():
    with pytest.raises(UserError, match="more steps than pretrain_steps and discriminator_steps together"):
        FADA(steps=1100)
