"""Eq. 4: samples climb an objective; the networks that define it stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

ASCENT_COST = 0.9  # time per image of an ascent step, relative to a step of ERM; LeNet on one thread


def ascend(
    objective: Callable[[Tensor], Tensor],
    x: Tensor,
    *,
    rate: float,
    steps: int,
    project: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Eq. 4: x⁺ ← x⁺ + γ·∇L_ADA(x⁺), `steps` times from x⁺ = x, in the shape and memory layout of x, without a graph.

    Each sample climbs its own value of `objective`, (N, …) → (N,), so that an image does not depend on which others
    share its batch. For that its networks must not mix samples: put BatchNorm in eval mode. Wrap the call in
    `frozen(*networks)`, and no gradient of a weight is computed; no parameter's `.grad` is ever touched. `project`,
    such as `lambda x: x.clamp(0, 1)`, keeps x⁺ a valid image after each step.

    >>> ascend(lambda x: -(x - 1).square().sum(1), torch.zeros(1, 2), rate=0.25, steps=2)
    tensor([[0.7500, 0.7500]])
    """
    x_plus = x.detach().clone()
    for _ in range(steps):
        x_plus.requires_grad_()
        value = objective(x_plus)
        if value.shape != x.shape[:1]:
            raise ValueError(f"objective has shape {tuple(value.shape)}, not a value for each of {len(x)} samples")
        (gradient,) = torch.autograd.grad(value.sum(), x_plus)
        x_plus = torch.add(x_plus.detach(), gradient, alpha=rate)
        if project is not None:
            x_plus = project(x_plus)
    return x_plus.detach()


def near_range(value_range: tuple[float, float], margin: float) -> Callable[[Tensor], Tensor]:
    """What keeps x⁺ near the range of images: on either side it may leave it by `margin` times its width.

    >>> near_range((0.0, 2.0), margin=0.5)(torch.tensor([-3.0, 1.0, 9.0]))
    tensor([-1.,  1.,  3.])
    """
    low, high = value_range
    room = margin * (high - low)
    return lambda x: x.clamp(low - room, high + room)


@contextmanager
def frozen(*modules: nn.Module) -> Iterator[None]:
    """Inside, no parameter of `modules` requires a gradient; afterwards each one that did does again.

    Backward passes then skip the weight gradients, a third of their work.

    >>> layer = nn.Linear(2, 1)
    >>> with frozen(layer):
    ...     layer(torch.zeros(1, 2)).requires_grad
    False
    >>> layer.weight.requires_grad
    True
    """
    thawed = [parameter for module in modules for parameter in module.parameters() if parameter.requires_grad]
    for parameter in thawed:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in thawed:
            parameter.requires_grad_()
