"""Losses over pairs of samples: one matrix of distances, no loop over pairs, no sample with itself."""

from __future__ import annotations

import torch
from torch import Tensor

_SMALL = 1e-12  # under a square root whose gradient is taken


def squared_distances(z: Tensor, others: Tensor) -> Tensor:
    """‖zᵢ − oⱼ‖² from each row of (N, D) to those of (M, D): (N, M), from one product.

    >>> squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([[ 0.],
            [25.]])
    """
    return (z.square().sum(1)[:, None] + others.square().sum(1)[None, :] - 2 * z @ others.T).clamp(min=0)


def contrastive_loss(z: Tensor, labels: Tensor, margin: float, across: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """CCSA: the mean of d² over pairs of one class, plus the mean of max(0, m − d)² over pairs of two classes.

    Pairs are those of a batch, embeddings (N, D) with labels (N,); or of one sample each of two domains, if the other's
    embeddings and labels are given as `across`. A kind of pair that there is none of counts 0.

    >>> z = torch.tensor([[0.0], [2.0]])
    >>> contrastive_loss(torch.cat([z, torch.tensor([[0.5]])]), torch.tensor([0, 0, 1]), margin=1.0)
    tensor(4.1250)
    >>> contrastive_loss(z, torch.tensor([0, 1]), 1.0, across=(torch.tensor([[1.5]]), torch.tensor([0])))
    tensor(2.5000)
    """
    others, other_labels = across or (z, labels)
    same = labels[:, None] == other_labels[None, :]
    pair = torch.ones_like(same) if across else torch.ones_like(same).triu(1)
    d2 = squared_distances(z, others)
    apart = (margin - (d2 + _SMALL).sqrt()).clamp(min=0).square()
    return _mean(d2, same & pair) + _mean(apart, ~same & pair)


def nearest_other_loss(z: Tensor, labels: Tensor, margin: float) -> Tensor:
    """d-SNE: max(0, farthest of the own class d² − nearest of another class d² + m), for embeddings (N, D).

    The mean over the samples that have another one of their class and one of another class; 0 without any.

    >>> nearest_other_loss(torch.tensor([[0.0], [2.0], [3.0]]), torch.tensor([0, 0, 1]), margin=1.0)
    tensor(2.)
    """
    d2 = squared_distances(z, z)
    same = labels[:, None] == labels[None, :]
    others = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    farthest = d2.masked_fill(~others, -torch.inf).amax(1)
    nearest = d2.masked_fill(same, torch.inf).amin(1)
    counted = others.any(1) & (~same).any(1)
    return _mean((farthest - nearest + margin).clamp(min=0), counted)


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return values.where(counted, 0.0).sum() / counted.sum().clamp(min=1)
