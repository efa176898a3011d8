"""Looking into a network's named layers, and changing what they give, without touching the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.hooks import RemovableHandle

from onedomain.errors import UserError
from onedomain.networks.named import IMAGE, NamedNetwork, first_of, in_mode
from onedomain.networks.precision import full


@dataclass
class Seen:
    """What passed through a network while it was watched: the inputs and outputs of the named layers, and z."""

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    embedding: Tensor | None = None

    @property
    def z(self) -> Tensor:
        if self.embedding is None:
            raise RuntimeError("no pass was watched, or the embedding layer is not named")
        return full(self.embedding)


@contextmanager
def watched(network: NamedNetwork) -> Iterator[Seen]:
    """Inside, a pass through the network leaves the inputs and outputs of its perturbed layers, and z."""
    seen = Seen()

    def keep(_layer: nn.Module | None, inputs: tuple[Tensor, ...], output: Any) -> None:
        if not inputs or not isinstance(inputs[0], Tensor):
            raise UserError("perturb", "a named layer is called without a tensor in the first place", "another layer")
        seen.inputs.append(inputs[0])
        features: Any = None if isinstance(output, Mapping) else first_of(output)
        seen.outputs.append(features)

    def keep_embedding(_layer: nn.Module, _inputs: tuple[Tensor, ...], output: Any) -> None:
        seen.embedding = first_of(output)

    with ExitStack() as hooks:
        for name in network.perturb:
            hooks.enter_context(_hook(network, name, lambda _network, inputs: keep(None, inputs, inputs[0]), keep))
        if network.embedding is not None:
            embedding = network.module.get_submodule(network.embedding)
            hooks.enter_context(embedding.register_forward_hook(keep_embedding))
        yield seen


@contextmanager
def added(network: NamedNetwork, offsets: Sequence[Tensor], share: Tensor) -> Iterator[None]:
    """Inside, the perturbed layers give Eq. 10 and 11: h mixed with h⁺ = h + Softplus(e) by λ.

    Every sample passes kinds·K times, in that order: with each of K draws, mixed in each of the ways that `share` says.
    λh + (1 − λ)(h + Softplus(e)) = h + (1 − λ)·Softplus(e): one operation on what are the largest tensors of a step.
    `offsets` are Softplus(e) of every layer, (K, N, …), and `share` 1 − λ, (kinds, K, N): 1 for samples that are
    perturbed in full. The network is given N images, which the first layer multiplies, so that what lies before it is
    computed once; or kinds·K·N images, if `can_expand` says no.
    """
    with ExitStack() as hooks:
        for name, offset in zip(network.perturb, offsets, strict=True):

            def perturb(_layer: nn.Module, _inputs: Any, output: Any, offset: Tensor = offset) -> Any:
                h = first_of(output)
                # In the precision of the pass, in which h is
                perturbed: Tensor = _Shared.apply(h, offset.to(h.dtype), share.to(h.dtype))  # type: ignore[no-untyped-call]
                return perturbed if h is output else (perturbed, *output[1:])

            def perturb_images(layer: nn.Module, inputs: Any, perturb: Any = perturb) -> tuple[Tensor, ...]:
                return perturb(layer, inputs, inputs[0]), *inputs[1:]

            hooks.enter_context(_hook(network, name, perturb_images, perturb))
        yield


def _hook(
    network: NamedNetwork, name: str, of_images: Callable[..., Any], of_layer: Callable[..., Any]
) -> RemovableHandle:
    """Have one of these called at a place of this name: before the network, or after the layer."""
    if name == IMAGE:
        return network.module.register_forward_pre_hook(of_images)
    return network.module.get_submodule(name).register_forward_hook(of_layer)


class _Shared(torch.autograd.Function):
    """h + share·offset for every draw and kind. Its own backward, since these are the largest tensors of a step:
    what autograd derives makes a tensor of their size for each product before it is summed.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, offset: Tensor, share: Tensor) -> Tensor:
        samples, of_sample = offset.shape[1], [1] * (h.dim() - 1)
        copies = (1, 1) if len(h) == samples else share.shape[:2]
        last = h.dim() == 4 and h.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if last else torch.contiguous_format
        flat = torch.empty(share.numel(), *h.shape[1:], dtype=h.dtype, device=h.device, memory_format=layout)
        h = h.view(*copies, samples, *h.shape[1:])
        ctx.save_for_backward(offset, share)
        ctx.multiplied = copies != share.shape[:2]
        # Written into what is returned: a view of something else could not be changed in place by the next layer.
        torch.addcmul(h, offset, share.view(*share.shape, *of_sample), out=flat.view(*share.shape, *h.shape[3:]))
        return flat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        offset, share = ctx.saved_tensors
        kinds, draws, samples = share.shape
        of_h = of_offset = of_share = None
        rows = _rows(gradient).view(kinds, draws * samples, -1)
        if ctx.needs_input_grad[0]:
            of_h = gradient
            if ctx.multiplied:
                of_h = _unrows(rows.view(kinds * draws, samples, -1).sum(0), gradient[:samples])
        weights = share.view(kinds, draws * samples, 1)
        if ctx.needs_input_grad[1]:
            summed = rows[0] * weights[0]
            for row, weight in zip(rows[1:], weights[1:], strict=True):
                summed.addcmul_(row, weight)
            of_offset = _unrows(summed, offset.flatten(0, 1)).view_as(offset)
        if ctx.needs_input_grad[2]:
            products = torch.bmm(rows.transpose(0, 1), _rows(offset.flatten(0, 1))[:, :, None])
            of_share = products[..., 0].t().reshape(share.shape)
        return of_h, of_offset, of_share


def _rows(features: Tensor) -> Tensor:
    """(N, C, …) → (N, features), channels last: a view for maps that are kept so."""
    return (features.permute(0, 2, 3, 1) if features.dim() == 4 else features).flatten(1)


def _unrows(rows: Tensor, like: Tensor) -> Tensor:
    """The way back, to the shape of `like`."""
    if like.dim() != 4:
        return rows.view(-1, *like.shape[1:])
    n, c, h, w = like.shape
    return rows.view(n, h, w, c).permute(0, 3, 1, 2)


def probe(network: NamedNetwork, images: Tensor) -> Seen:
    """Try the network on a few images: are the layers to perturb there, called once, and in the order named?"""
    layers = [name for name in network.perturb if name != IMAGE]
    if not layers:
        there = ", ".join(name for name, _ in network.module.named_modules() if name)
        raise UserError("perturb", "no layer is named", f"one or more of {there}")
    calls: list[str] = []
    with ExitStack() as hooks:
        for name in layers:
            layer = network.module.get_submodule(name)
            hooks.enter_context(layer.register_forward_hook(lambda *_, name=name: calls.append(name)))
        # In eval mode nothing of the network moves.
        with torch.no_grad(), in_mode(network.module, training=False), watched(network) as seen:
            network(images)
    for name in layers:
        if calls.count(name) != 1:
            raise UserError("perturb", f"layer {name!r} is called {calls.count(name)} times", "layers called once")
    if calls != layers:
        raise UserError("perturb", f"got {', '.join(layers)}", f"in the order of the pass: {', '.join(calls)}")
    for name, output in zip(network.perturb, seen.outputs, strict=True):
        if not isinstance(output, Tensor) or output.dim() not in (2, 3, 4):
            raise UserError("perturb", f"layer {name!r} gives no maps, tokens or vectors", "a convolution, linear, …")
    return seen


def can_expand(network: NamedNetwork, images: Tensor) -> bool:
    """Whether samples may be multiplied at the first perturbed layer: not if a path leads around it."""
    seen = probe(network, images)
    none = [torch.zeros(2, *output.shape, device=output.device) for output in seen.outputs]
    share = torch.ones(1, 2, len(images), device=images.device)
    try:
        with torch.no_grad(), in_mode(network.module, training=False):
            with added(network, none, share):
                expanded = network(images)
            plain = network(images)
    except Exception:  # shapes that do not fit (something before the layer is used after it), or a check of the user's
        return False
    return expanded.shape[0] == 2 * len(images) and torch.allclose(expanded, torch.cat([plain, plain]), atol=1e-4)


def require_reached_embedding(network: NamedNetwork, images: Tensor) -> None:
    """Refuse an embedding that a change of the perturbed layers does not reach."""
    seen = probe(network, images)
    offsets = [torch.ones(1, *output.shape, device=output.device, requires_grad=True) for output in seen.outputs]
    share = torch.ones(1, 1, len(images), device=images.device)
    reached_by = added(network, offsets, share)
    with torch.enable_grad(), in_mode(network.module, training=False), reached_by, watched(network) as noisy:
        network(images)
    # By the graph, not by values: those of a trained network may well be 0 for images like these.
    reached = noisy.z.requires_grad and any(
        gradient is not None for gradient in torch.autograd.grad(noisy.z.sum(), offsets, allow_unused=True)
    )
    if not reached:
        given = f"{network.embedding!r} does not depend on {', '.join(network.perturb)}"
        raise UserError("embedding", given, "a layer after them")
