"""φ of Uncertain SDG: φp learns noise for named layers (Eq. 10), φm how to mix it in (Eq. 11).

The networks that are perturbed stay as they are: hooks watch the inputs of the named layers and add to their outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Beta

from onedomain.errors import UserError
from onedomain.networks import NamedNetwork

MU_BOUND = 2.0  # released code: μ within ±2, σ up to 1
BETA_RANGE = (0.5, 2.0)  # released code: of a and b
START_MU, START_LOG_VARIANCE = -2.0, -4.0  # before the bounds: training starts from little noise
LARGEST_MAP = 28  # of the side of (μ, σ) that φm reads; the first layer of the Digits LeNet has 28×28


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
        return self.embedding


@dataclass(frozen=True)
class Noise:
    """What φ says of N samples: μ and σ of every layer, each (N, …), and a, b, τ, each (N,)."""

    mu: list[Tensor]
    sigma: list[Tensor]
    a: Tensor
    b: Tensor
    tau: Tensor

    def draw(self, count: int) -> list[Tensor]:
        """Softplus(e), e ~ N(μ, σ), for every layer, drawn `count` times: (count, N, …), with gradients to φ."""
        return self._with([_normal(count, mu) for mu in self.mu])

    def draw_alike(self, count: int, seed: int) -> list[Tensor]:
        """The same, with one standard normal draw for all samples: what is drawn for one does not depend on others."""
        generator = torch.Generator().manual_seed(seed)
        return self._with([torch.randn(count, 1, *mu.shape[1:], generator=generator).to(mu) for mu in self.mu])

    def _with(self, standard: list[Tensor]) -> list[Tensor]:
        return [
            F.softplus(torch.addcmul(mu, sigma, normal))
            for mu, sigma, normal in zip(self.mu, self.sigma, standard, strict=True)
        ]

    def draw_mix(self, count: int) -> Tensor:
        """λ ~ Beta(a, b) of every sample and draw, (count, N), with gradients to φm (implicit reparameterisation)."""
        mix: Tensor = Beta(self.a, self.b).rsample((count,))
        return mix

    @property
    def strength(self) -> Tensor:
        """Mean perturbation of the features, Softplus at μ, over all layers: how far S⁺ is carried. A scalar."""
        return torch.stack([F.softplus(mu).mean() for mu in self.mu]).mean()


class Perturbation(nn.Module):
    """φp and φm for the layers that `network.perturb` names.

    Per layer, a twin of it that gives μ and another that gives log σ², both from the layer's input; a layer that is
    neither convolution nor linear gets a 3×3 convolution or a linear map instead. φm is one linear map from the first
    layer's (μ, σ) to a, b and τ; maps with a side above 28 are averaged down to it, so that φm does not grow with the
    image. For the Digits LeNet these are 720,643 parameters.
    """

    def __init__(self, network: NamedNetwork, images: Tensor) -> None:
        super().__init__()
        seen = probe(network, images)
        modules = [network.module.get_submodule(name) for name in network.perturb]
        shapes = list(zip(modules, seen.inputs, seen.outputs, strict=True))
        self.mu = nn.ModuleList([_twin(*shape, start=START_MU) for shape in shapes])
        self.log_variance = nn.ModuleList([_twin(*shape, start=START_LOG_VARIANCE) for shape in shapes])
        self.mixer = nn.Linear(2 * _readable(seen.outputs[0]).shape[1], 3)
        self.to(images.device)

    def forward(self, inputs: Sequence[Tensor]) -> Noise:
        """(μ, σ) and (a, b, τ) from the inputs of the perturbed layers. θ gets no gradient through them."""
        inputs = [each.detach() for each in inputs]
        mu = [MU_BOUND * torch.tanh(twin(x) / MU_BOUND) for twin, x in zip(self.mu, inputs, strict=True)]
        # log σ² is bounded by 0 from above, as −softplus(−s); the root of a sigmoid would have no gradient far below 0.
        sigma = [torch.exp(-0.5 * F.softplus(-twin(x))) for twin, x in zip(self.log_variance, inputs, strict=True)]
        raw = torch.sigmoid(self.mixer(torch.cat([_readable(mu[0]), _readable(sigma[0])], 1)))
        low, high = BETA_RANGE
        a, b, tau = (low + (high - low) * raw[:, 0], low + (high - low) * raw[:, 1], raw[:, 2])
        return Noise(mu, sigma, a, b, tau)


@contextmanager
def watched(network: NamedNetwork) -> Iterator[Seen]:
    """Inside, a pass through the network leaves the inputs and outputs of its perturbed layers, and z."""
    seen = Seen()

    def keep_layer(_layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not inputs or not isinstance(inputs[0], Tensor):
            raise UserError("perturb", "a named layer is called without a tensor in the first place", "another layer")
        seen.inputs.append(inputs[0])
        seen.outputs.append(output)

    def keep_embedding(_layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        seen.embedding = output

    hooks = [network.module.get_submodule(name).register_forward_hook(keep_layer) for name in network.perturb]
    if network.embedding is not None:
        hooks.append(network.module.get_submodule(network.embedding).register_forward_hook(keep_embedding))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def added(network: NamedNetwork, offsets: Sequence[Tensor], share: Tensor) -> Iterator[None]:
    """Inside, the perturbed layers give Eq. 10 and 11: h mixed with h⁺ = h + Softplus(e) by λ.

    Every sample passes kinds·K times, in that order: with each of K draws, mixed in each of the ways that `share` says.
    λh + (1 − λ)(h + Softplus(e)) = h + (1 − λ)·Softplus(e): one operation on what are the largest tensors of a step.

    Args:
        network: the network whose layers are perturbed. It is given N images, which the first layer multiplies, so
            that what lies before it is computed once; or kinds·K·N images, if `can_expand` says no.
        offsets: Softplus(e) of every layer, (K, N, …).
        share: 1 − λ, (kinds, K, N): 1 for samples that are perturbed in full.
    """
    hooks = []
    for name, offset in zip(network.perturb, offsets, strict=True):

        def perturb(_layer: nn.Module, _inputs: tuple[Tensor, ...], h: Tensor, offset: Tensor = offset) -> Tensor:
            samples, of_sample = offset.shape[1], [1] * (h.dim() - 1)
            copies = (1, 1) if len(h) == samples else share.shape[:2]
            h = h.view(*copies, samples, *h.shape[1:])
            return torch.addcmul(h, offset, share.view(*share.shape, *of_sample)).flatten(0, 2)

        hooks.append(network.module.get_submodule(name).register_forward_hook(perturb))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def probe(network: NamedNetwork, images: Tensor) -> Seen:
    """Try the network on a few images: are the layers to perturb there, called once, and in the order named?"""
    if not network.perturb:
        layers = ", ".join(name for name, _ in network.module.named_modules() if name)
        raise UserError("perturb", "no layer is named", f"one or more of {layers}")
    calls: list[str] = []
    hooks = []
    for name in network.perturb:
        layer = network.module.get_submodule(name)
        hooks.append(layer.register_forward_hook(lambda *_, name=name: calls.append(name)))
    was_training = network.module.training
    network.module.eval()  # nothing of the network moves
    try:
        with torch.no_grad(), watched(network) as seen:
            network(images)
    finally:
        network.module.train(was_training)
        for hook in hooks:
            hook.remove()
    for name in network.perturb:
        if calls.count(name) != 1:
            raise UserError("perturb", f"layer {name!r} is called {calls.count(name)} times", "layers called once")
    if calls != list(network.perturb):
        raise UserError("perturb", f"got {', '.join(network.perturb)}", f"in the order of the pass: {', '.join(calls)}")
    for name, output in zip(network.perturb, seen.outputs, strict=True):
        if not isinstance(output, Tensor) or output.dim() not in (2, 4):
            raise UserError("perturb", f"layer {name!r} gives no feature maps or vectors", "a convolution, linear, …")
    return seen


def can_expand(network: NamedNetwork, images: Tensor) -> bool:
    """Whether samples may be multiplied at the first perturbed layer: not if a path leads around it."""
    seen = probe(network, images)
    none = [torch.zeros(2, *output.shape, device=output.device) for output in seen.outputs]
    share = torch.ones(1, 2, len(images), device=images.device)
    was_training = network.module.training
    network.module.eval()
    try:
        with torch.no_grad(), added(network, none, share):
            expanded = network(images)
        with torch.no_grad():
            plain = network(images)
    except Exception:  # shapes that do not fit (something before the layer is used after it), or a check of the user's
        return False
    finally:
        network.module.train(was_training)
    return expanded.shape[0] == 2 * len(images) and torch.allclose(expanded, torch.cat([plain, plain]), atol=1e-4)


def _twin(layer: nn.Module, before: Tensor, after: Tensor, start: float) -> nn.Module:
    """A map with the layer's shape, small at first and around `start`."""
    twin: nn.Conv2d | nn.Linear | nn.Sequential
    if isinstance(layer, nn.Conv2d):
        twin = nn.Conv2d(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,  # type: ignore[arg-type]
            layer.stride,  # type: ignore[arg-type]
            layer.padding,  # type: ignore[arg-type]
            layer.dilation,  # type: ignore[arg-type]
            layer.groups,
        )
        last: nn.Module = twin
    elif before.dim() == 2 and after.dim() == 2:
        last = twin = nn.Linear(before.shape[1], after.shape[1])
    elif before.dim() == 4 and after.dim() == 4:
        last = nn.Conv2d(before.shape[1], after.shape[1], 3, padding=1)
        resize = nn.AdaptiveAvgPool2d(tuple(after.shape[2:]))
        twin = nn.Sequential(resize, last)
    else:
        raise UserError("perturb", f"a layer turns {tuple(before.shape)} into {tuple(after.shape)}", "maps or vectors")
    nn.init.constant_(last.bias, start)  # type: ignore[arg-type]
    return twin.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _normal(count: int, like: Tensor) -> Tensor:
    """Standard normal draws, (count, *like.shape), in the memory layout of `like`: mixed layouts are slow to add."""
    if like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last):
        n, c, h, w = like.shape
        return torch.randn(count, n, h, w, c, device=like.device, dtype=like.dtype).permute(0, 1, 4, 2, 3)
    return torch.randn(count, *like.shape, device=like.device, dtype=like.dtype)


def _readable(parameter: Tensor) -> Tensor:
    """μ or σ as a vector for φm: (N, …) → (N, features)."""
    if parameter.dim() == 4 and max(parameter.shape[2:]) > LARGEST_MAP:
        height, width = (min(side, LARGEST_MAP) for side in parameter.shape[2:])
        parameter = F.adaptive_avg_pool2d(parameter, (height, width))
    return parameter.flatten(1)
