"""How far a domain was moved: Wasserstein distances between samples of two domains (section 5 of the paper)."""

from __future__ import annotations

import torch


def wasserstein(a: torch.Tensor, b: torch.Tensor) -> float:
    """Empirical optimal transport between two samples of equal size, (n, …) each.

    The cost of moving one point to another is the mean squared difference of their coordinates, so that embeddings and
    images of any size compare. Exact: the best of all one-to-one assignments.

    >>> wasserstein(torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [2.0]]))
    4.0
    """
    from scipy.optimize import linear_sum_assignment

    a, b = a.flatten(1).double().cpu(), b.flatten(1).double().cpu()
    cost = (torch.cdist(a, b).square() / a.shape[1]).numpy()
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].mean())
