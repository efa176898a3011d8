"""The paper's equations: pure functions, one value per sample."""

from __future__ import annotations

import torch
from torch.nn import functional


def task_loss(logits: torch.Tensor, labels: torch.Tensor, void: int | None = None) -> torch.Tensor:
    """Eq. 2, cross-entropy: (n, c) logits and (n,) labels give (n,) losses.

    Dense: (n, c, h, w) and (n, h, w) give each image's mean over its pixels; those labelled `void` never count.

    >>> task_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor([0.6931])
    """
    if void is None:
        losses = functional.cross_entropy(logits, labels, reduction="none")
        return losses.flatten(1).mean(1) if losses.ndim > 1 else losses
    counted = labels != void
    losses = functional.cross_entropy(logits, labels.masked_fill(~counted, 0), reduction="none") * counted
    if losses.ndim == 1:
        return losses
    return losses.flatten(1).sum(1) / counted.flatten(1).sum(1).clamp(min=1)
