"""One step of an optimiser down a loss, and the optimisers that take it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from onedomain.settings import Settings


def descend(
    optimiser: torch.optim.Optimizer, loss: Tensor, scaler: torch.amp.GradScaler | None = None, **also: Tensor
) -> dict[str, Tensor]:
    """Step down the gradient of `loss`. Returns the loss, and what else is to be logged, as values without a graph.

    `scaler` keeps gradients of float16 in its range, and leaves a step out where they are not finite.

    >>> theta = nn.Parameter(torch.tensor(3.0))
    >>> descend(torch.optim.SGD([theta], lr=0.1), loss=theta**2)
    {'loss': tensor(9.)}
    >>> round(theta.item(), 4)
    2.4
    """
    optimiser.zero_grad()
    if scaler is None:
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    else:
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.step(optimiser)
        scaler.update()
    return {name: value.detach() for name, value in {"loss": loss, **also}.items()}


def new_optimiser(module: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Adam or SGD, as the settings say."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimiser == "sgd":
        return torch.optim.SGD(module.parameters(), rate, momentum=0.9, weight_decay=decay, nesterov=True)
    return adam(module, rate, decay)


def adam(module: nn.Module, learning_rate: float, weight_decay: float = 0.0) -> torch.optim.Adam:
    """Adam in its fused form: on a CPU the plain one takes longer than the LeNet's forward pass."""
    return torch.optim.Adam(module.parameters(), learning_rate, weight_decay=weight_decay, fused=True)
