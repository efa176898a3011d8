from __future__ import annotations

import pytest
import torch

from onedomain.components.contrastive import (
    contrastive_loss,
    nearest_other_loss,
    squared_distances,
)

Z = torch.randn(14, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 3, 0, 0])  # class 3 has a single sample


def test_distances_against_a_double_loop():
    slow = torch.tensor([[(a - b).square().sum() for b in Z] for a in Z], dtype=torch.float64)
    assert torch.allclose(squared_distances(Z, Z), slow, atol=1e-12)


@pytest.mark.parametrize("margin", [0.5, 1.0, 4.0])
def test_contrastive_loss_against_a_double_loop(margin):
    same, different = [], []
    for i in range(14):
        for j in range(i):
            d = (Z[i] - Z[j]).norm()
            if LABELS[i] == LABELS[j]:
                same.append(d**2)
            else:
                different.append(max(0.0, margin - d.item()) ** 2)
    expected = sum(same) / len(same) + sum(different) / len(different)
    assert contrastive_loss(Z, LABELS, margin).item() == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("margin", [0.5, 1.0, 40.0])
def test_nearest_other_loss_against_a_double_loop(margin):
    values = []
    for i in range(14):
        own = [(Z[i] - Z[j]).square().sum().item() for j in range(14) if j != i and LABELS[j] == LABELS[i]]
        other = [(Z[i] - Z[j]).square().sum().item() for j in range(14) if LABELS[j] != LABELS[i]]
        if own and other:
            values.append(max(0.0, max(own) - min(other) + margin))
    assert nearest_other_loss(Z, LABELS, margin).item() == pytest.approx(sum(values) / 13, abs=1e-9)


@pytest.mark.parametrize("loss", [contrastive_loss, nearest_other_loss])
def test_gradients_are_finite_and_right_also_for_equal_samples(loss):
    z = Z.clone()
    z[3] = z[0]  # a distance of 0, where a square root has no gradient
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z, LABELS, 1.0), z)
    assert torch.isfinite(gradient).all()
    assert torch.autograd.gradcheck(lambda z: loss(z, LABELS, 1.0), Z.clone().requires_grad_())


@pytest.mark.parametrize("loss", [contrastive_loss, nearest_other_loss])
def test_a_batch_without_pairs_counts_nothing(loss):
    alone = loss(Z[:1].clone().requires_grad_(), LABELS[:1], 1.0)
    assert alone.item() == 0
    one_class = nearest_other_loss(Z[:4], torch.zeros(4, dtype=torch.long), 1.0)
    assert one_class.item() == 0


def test_contrastive_loss_across_two_domains_against_a_double_loop():
    same, different = [], []
    for z, label in zip(Z[:9], LABELS[:9], strict=True):
        for other, other_label in zip(Z[9:], LABELS[9:], strict=True):
            d = (z - other).norm().item()
            (same if label == other_label else different).append(d**2 if label == other_label else max(0, 3 - d) ** 2)
    expected = sum(same) / len(same) + sum(different) / len(different)
    found = contrastive_loss(Z[:9], LABELS[:9], 3.0, across=(Z[9:], LABELS[9:]))
    assert found.item() == pytest.approx(expected, abs=1e-9)
    assert contrastive_loss(Z[:2], LABELS[:2], 1.0, across=(Z[:0], LABELS[:0])) == 0
