"""One step of an optimiser down a loss, and the optimisers that take it."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from onedomain.networks.distributed import average
from onedomain.settings import Settings

Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


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
    (loss if scaler is None else scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
    take_step(optimiser, scaler)
    if scaler is not None:
        scaler.update()
    return {name: value.detach() for name, value in {"loss": loss, **also}.items()}


def take_step(optimiser: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None = None) -> None:
    """Step down the gradients that are there, unless those of float16 are not finite; `scaler.update` then follows."""
    if scaler is None or not scaler.is_enabled():
        optimiser.step()
    else:
        _average_gradients(optimiser)  # before they are looked at: all processes must find the same
        scaler.step(optimiser)


def together(optimiser: Kind) -> Kind:
    """The optimiser, which steps down the mean of the gradients of all processes that train together."""
    optimiser.register_step_pre_hook(lambda stepping, *_: _average_gradients(stepping))
    return optimiser


def _average_gradients(optimiser: torch.optim.Optimizer) -> None:
    average(p.grad for group in optimiser.param_groups for p in group["params"] if p.grad is not None)


def new_optimiser(module: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Adam or SGD, as the settings say."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimiser == "sgd":
        sgd = torch.optim.SGD(module.parameters(), rate, momentum=0.9, weight_decay=decay, nesterov=True)
        return together(sgd)
    return adam(module, rate, decay)


def adam(module: nn.Module, learning_rate: float, weight_decay: float = 0.0) -> torch.optim.Adam:
    """Adam in its fused form: on a CPU the plain one takes longer than the LeNet's forward pass."""
    return together(torch.optim.Adam(module.parameters(), learning_rate, weight_decay=weight_decay, fused=True))
