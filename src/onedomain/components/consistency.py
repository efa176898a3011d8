"""How far several predictions of the same sample lie apart."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def divergence_from_mean(logits: Tensor) -> Tensor:
    """Σᵥ KL(pᵥ ‖ p̄) over V views of each sample, (V, N, C, …) → (N, …); by V it is the Jensen–Shannon divergence.

    >>> divergence_from_mean(torch.tensor([[[0.0, 0.0]], [[0.0, 0.0]]]))
    tensor([0.])
    """
    log_p = logits.log_softmax(2)
    log_mean = torch.logsumexp(log_p, 0) - math.log(len(logits))
    return (log_p.exp() * (log_p - log_mean)).sum((0, 2))
