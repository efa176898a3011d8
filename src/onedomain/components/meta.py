"""Eq. 8 and 9: meta-train on the source, meta-test on the augmented domains, and the gradient of both.

BatchNorm. In a meta step the network runs at θ on the source and at θ̂ on K domains. A layer in train mode
normalises with the statistics of its own batch, so each domain is a pass of its own when the network has
such a layer; any other network takes all K domains in one pass, which gives the same losses. The running
statistics are those of the source at θ: the first source pass moves them, once a meta step, no other does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from onedomain.components.equations import task_loss
from onedomain.networks.distributed import averaged, in_shares
from onedomain.networks.named import logits_of
from onedomain.networks.precision import full, passing

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Model:
    """A network at given parameters: called like the network itself, which keeps its own.

    `buffers` stand in for the network's own; the passes of this model write into them instead.
    """

    network: nn.Module
    params: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with sdpa_kernel(SDPBackend.MATH):  # the other kinds of attention have no second derivative
            return logits_of(functional_call(self.network, {**self.params, **self.buffers}, args, kwargs))

    @property
    def mixes_samples(self) -> bool:
        """Whether some layer normalises with the statistics of the batch: BatchNorm in train mode."""
        return any(module.training and hasattr(module, "running_mean") for module in self.network.modules())


class MetaGradient(NamedTuple):
    """Eq. 9: the gradient by parameter name, and the losses it is the gradient of, without a graph.

    Of processes that train together each has a gradient whose mean is that one: an optimiser averages them.
    """

    gradients: Parameters
    source_loss: Tensor  # as source_loss returned it, like the next never scaled
    domain_losses: Tensor  # as domain_losses returned them, (K,)

    def assign(self, network: nn.Module) -> None:
        """Make this the `.grad` of the network's parameters, for an optimiser to step."""
        for name, parameter in network.named_parameters():
            gradient = self.gradients.get(name)
            parameter.grad = None if gradient is None else in_layout_of(parameter, gradient)


def in_layout_of(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the memory layout of its parameter: fused optimisers walk over both without looking."""
    same = gradient.stride() == parameter.stride()
    return gradient if same else torch.empty_like(parameter).copy_(gradient)


def meta_gradient(
    network: nn.Module,
    source_loss: Callable[[Model], Tensor],
    domain_losses: Callable[[Model], Tensor],
    *,
    rate: float,
    inner_steps: int = 1,
    second_order: bool = True,
    also: Mapping[str, Tensor] | None = None,
    scale: float = 1.0,
) -> MetaGradient:
    """Eq. 9: ∇θ[ L(θ; S) + Σₖ L(θ̂; S⁺ₖ) ], where θ̂ is θ after `inner_steps` of Eq. 8 on S.

    With g' = ∇ΣₖL(θ̂; S⁺ₖ), the chain rule through one inner step gives (I − η∇²L(θ; S))·g'. So the meta-test
    is an ordinary gradient at θ̂, with no graph back to θ, and the curvature enters as one Hessian-vector
    product on the source pass that the inner step has made already. This is exact, and several inner steps
    chain the same product.

    Args:
        network: its parameters that require a gradient are θ; their `.grad` stays as it is.
        source_loss: L(θ; S), such as `lambda model: batch_losses(model, [source])`. Its values are summed.
        domain_losses: L(θ̂; S⁺ₖ) of each domain, (K,), such as `lambda model: batch_losses(model, domains)`.
        rate: η of the inner steps.
        inner_steps: how many gradient steps lead from θ to θ̂, at least 1, all on the same source batch.
        second_order: False leaves the Hessian out: the gradient at θ̂ counts as the gradient at θ.
        also: tensors beside θ that the meta-test depends on directly; their gradients are taken along. It is read
            after the meta-test: `source_loss` may make them.
        scale: by which all gradients are multiplied, as a `GradScaler` has it: those of float16 are lost if small.

    Returns:
        The gradient of each parameter by its name, those of `also` by theirs, all of them scaled, and the losses.
        Random layers (dropout) draw anew in each pass.

    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(network.weight, 1.0)
    >>> x = torch.ones(1, 1)
    >>> square = lambda model: model(x).square().sum()
    >>> meta_gradient(network, square, square, rate=0.25).gradients["weight"]  # 2θ + 2θ̂(1 − 2η), θ̂ = 0.5
    tensor([[2.5000]])
    """
    theta = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    spare_buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}

    # Without stand-ins for its buffers, this first pass moves the network's own running statistics.
    path = [Model(network, theta, buffers={})]
    losses: list[Tensor] = []
    inner_gradients: list[Sequence[Tensor]] = []
    for _ in range(inner_steps):
        here = path[-1]
        losses.append(source_loss(here))
        inner = gradients([losses[-1].sum() * scale], here.params.values(), create_graph=second_order)
        inner_gradients.append(averaged(inner))
        theta_hat = {
            # Detached: a graph back to θ would only make the meta-test carry what the product below adds.
            name: torch.sub(start.detach(), gradient.detach(), alpha=rate / scale).requires_grad_()
            for (name, start), gradient in zip(here.params.items(), inner_gradients[-1], strict=True)
        }
        path.append(Model(network, theta_hat, spare_buffers))

    meta_test = domain_losses(path[-1])
    beside = dict(also or {})
    both = gradients([meta_test.sum() * scale], [*path[-1].params.values(), *beside.values()])
    meta, direct = both[: len(theta)], both[len(theta) :]
    if second_order:
        for here, gradient in zip(reversed(path[:-1]), reversed(inner_gradients), strict=True):
            # Both are scaled; their product is to be so once, also on the way.
            vector = meta if scale == 1 else [m / scale for m in meta]
            curvature = _hessian_vector(gradient, here.params.values(), vector)
            meta = tuple(torch.sub(m, c, alpha=rate) for m, c in zip(meta, curvature, strict=True))
    total = {name: m + g.detach() for name, m, g in zip(theta, meta, inner_gradients[0], strict=True)}
    total.update(zip(beside, direct, strict=True))
    return MetaGradient(total, losses[0].detach(), meta_test.detach())


def batch_losses(
    model: Model,
    batches: Sequence[tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor] = task_loss,
    half: torch.dtype | None = None,
) -> Tensor:
    """The mean `loss` on each of K batches, (K,), in one pass if the network treats each sample by itself.

    `half` is the precision of the passes, as a `NamedNetwork` has it.
    """

    def losses(images: Tensor, labels: Tensor) -> Any:
        with passing(half, images.device):
            logits = model(images)
        return loss(full(logits), labels)

    if model.mixes_samples:
        return torch.stack([in_shares(losses, *batch).mean() for batch in batches])
    images, labels = (torch.cat(column) for column in zip(*batches, strict=True))
    parts = torch.split(in_shares(losses, images, labels), [len(images) for images, _ in batches])
    return torch.stack([part.mean() for part in parts])


def gradients(
    values: Iterable[Tensor],
    by: Iterable[Tensor],
    towards: Iterable[Tensor] | None = None,
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> tuple[Tensor, ...]:
    """Gradients of `values`, each weighed by what stands at its place in `towards`; zeros for what takes no part."""
    return torch.autograd.grad(
        tuple(values),
        tuple(by),
        None if towards is None else tuple(towards),
        retain_graph=retain_graph or create_graph,
        create_graph=create_graph,
        allow_unused=True,
        materialize_grads=True,
    )


def _hessian_vector(gradient: Sequence[Tensor], params: Iterable[Tensor], vector: Sequence[Tensor]) -> Sequence[Tensor]:
    """∇²L·v as the gradient of ⟨∇L, v⟩, where `gradient` is ∇L with its graph."""
    # A parameter that enters the loss linearly, or not at all, has a gradient without a graph: no curvature.
    curved = [(g, v) for g, v in zip(gradient, vector, strict=True) if g.requires_grad]
    params = list(params)
    if not curved:
        return [torch.zeros_like(parameter) for parameter in params]
    outputs, cotangents = zip(*curved, strict=True)
    return gradients(outputs, params, cotangents)
