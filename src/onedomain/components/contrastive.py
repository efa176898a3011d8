"""Losses over pairs of samples: one matrix of distances, no loop over pairs, no sample with itself."""

from __future__ import annotations

import torch
from torch import Tensor

_SMALL = 1e-12  # under a square root whose gradient is taken


def squared_distances(z: Tensor, others: Tensor | None = None) -> Tensor:
    """‖zᵢ − zⱼ‖² between all rows of (N, D), or from each to those of (M, D): (N, N) or (N, M), from one product.

    >>> squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[ 0., 25.],
            [25.,  0.]])
    """
    others = z if others is None else others
    return (z.square().sum(1)[:, None] + others.square().sum(1)[None, :] - 2 * z @ others.T).clamp(min=0)


def contrastive_loss(z: Tensor, labels: Tensor, margin: float) -> Tensor:
    """CCSA: the mean of d² over pairs of one class, plus the mean of max(0, m − d)² over pairs of two classes.

    Args:
        z: embeddings, (N, D).
        labels: (N,).
        margin: m, how far samples of two classes should be apart.

    Returns:
        A scalar; a kind of pair that the batch does not have counts 0.

    >>> contrastive_loss(torch.tensor([[0.0], [2.0], [0.5]]), torch.tensor([0, 0, 1]), margin=1.0)
    tensor(4.1250)
    """
    same = labels[:, None] == labels[None, :]
    pair = torch.ones_like(same).triu(1)
    return _contrast(squared_distances(z), same & pair, ~same & pair, margin)


def contrastive_loss_across(z: Tensor, labels: Tensor, others: Tensor, other_labels: Tensor, margin: float) -> Tensor:
    """CCSA between two domains: as `contrastive_loss`, over all pairs of one sample of each.

    Args:
        z, labels: embeddings of the one domain, (N, D), and their classes, (N,).
        others, other_labels: of the other, (M, D) and (M,).
        margin: m, how far samples of two classes should be apart.

    Returns:
        A scalar; a kind of pair that there is none of counts 0.

    >>> z, others = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.5]])
    >>> contrastive_loss_across(z, torch.tensor([0, 1]), others, torch.tensor([0]), margin=1.0)
    tensor(2.5000)
    """
    same = labels[:, None] == other_labels[None, :]
    return _contrast(squared_distances(z, others), same, ~same, margin)


def nearest_other_loss(z: Tensor, labels: Tensor, margin: float) -> Tensor:
    """d-SNE: max(0, farthest of the own class d² − nearest of another class d² + m), the mean over samples.

    Args:
        z: embeddings, (N, D).
        labels: (N,).
        margin: m.

    Returns:
        A scalar, over the samples that have another one of their class and one of another class; 0 without any.

    >>> nearest_other_loss(torch.tensor([[0.0], [2.0], [3.0]]), torch.tensor([0, 0, 1]), margin=1.0)
    tensor(2.)
    """
    d2 = squared_distances(z)
    same = labels[:, None] == labels[None, :]
    others = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    farthest = d2.masked_fill(~others, -torch.inf).amax(1)
    nearest = d2.masked_fill(same, torch.inf).amin(1)
    counted = others.any(1) & (~same).any(1)
    return _mean((farthest - nearest + margin).clamp(min=0), counted)


def _contrast(d2: Tensor, same: Tensor, other: Tensor, margin: float) -> Tensor:
    apart = (margin - (d2 + _SMALL).sqrt()).clamp(min=0).square()
    return _mean(d2, same) + _mean(apart, other)


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return values.where(counted, 0.0).sum() / counted.sum().clamp(min=1)
