"""φ of Uncertain SDG: φp learns noise for named layers (Eq. 10), φm how to mix it in (Eq. 11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.distributions import Beta

from onedomain.components.compact import as_vectors, mean_of_places
from onedomain.errors import UserError
from onedomain.networks import NamedNetwork
from onedomain.networks.distributed import gathered, own
from onedomain.networks.hooks import added, probe, watched
from onedomain.networks.named import IMAGE
from onedomain.networks.precision import full, passing

MU_BOUND = 2.0  # released code: μ within ±2, σ up to 1
BETA_RANGE = (0.5, 2.0)  # released code: of a and b
START_MU, START_LOG_VARIANCE = -2.0, -4.0  # before the bounds: training starts from little noise
SMOOTH_SIDES = (2, 4, 8, 16)  # independent values along a side of the image's noise
LARGEST_MAP = 28  # of the side of (μ, σ) that φm reads; the first layer of the Digits LeNet has 28×28


@dataclass(frozen=True)
class Noise:
    """What φ says of N samples: μ and σ of every layer, each (N, …), and a, b, τ, each (N,)."""

    mu: list[Tensor]
    sigma: list[Tensor]
    a: Tensor
    b: Tensor
    tau: Tensor
    image: bool = False  # whether the first of the layers is the image itself, whose noise is smooth
    of: int | None = None  # how many samples the batch has of which these are a process's share; all have their draws

    def draw(self, count: int) -> list[Tensor]:
        """Softplus(e), e ~ N(μ, σ), for every layer, drawn `count` times: (count, N, …), with gradients to φ."""
        smooth = [self.image and place == 0 for place in range(len(self.mu))]
        drawn = zip(self.mu, smooth, strict=True)
        draws = ((smooth_normal if smoothly else _normal, mu) for mu, smoothly in drawn)
        return self._with([self._own(draw(count, mu, samples=self.of)) for draw, mu in draws])

    def draw_alike(self, count: int, seed: int) -> list[Tensor]:
        """The same, with one standard normal draw for all samples: what is drawn for one does not depend on others."""
        generator = torch.Generator().manual_seed(seed)
        layers = self.mu[1:] if self.image else self.mu
        standard = [torch.randn(count, 1, *mu.shape[1:], generator=generator).to(mu) for mu in layers]
        if self.image:
            standard.insert(0, smooth_normal(count, self.mu[0][:1], generator))
        return self._with(standard)

    def _with(self, standard: list[Tensor]) -> list[Tensor]:
        drawn = zip(self.mu, self.sigma, standard, strict=True)
        return [_Softplus.apply(mu, sigma, normal) for mu, sigma, normal in drawn]  # type: ignore[no-untyped-call]

    def draw_mix(self, count: int) -> Tensor:
        """λ ~ Beta(a, b) of every sample and draw, (count, N), with gradients to φm (implicit reparameterisation)."""
        a, b = (self.a, self.b) if self.of is None else (gathered(self.a, self.of), gathered(self.b, self.of))
        return self._own(Beta(a, b).rsample((count,)))

    def _own(self, drawn: Tensor) -> Tensor:
        """Of draws for the samples of a whole batch those of this share."""
        return drawn if self.of is None else own(drawn, dim=1)


class _Softplus(torch.autograd.Function):
    """Softplus(μ + σ·ε) of all draws. Its own backward, which sums over draws without products of their size."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, standard: Tensor) -> Tensor:
        e = torch.addcmul(mu, sigma, standard)
        ctx.save_for_backward(e, standard)
        return F.softplus(e)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        e, standard = ctx.saved_tensors
        of_mu, of_sigma = torch.zeros_like(e[0]), torch.zeros_like(e[0])
        for of_draw, e_of_draw, standard_of_draw in zip(gradient, e, standard, strict=True):
            of_e = torch.sigmoid(e_of_draw).mul_(of_draw)
            of_mu += of_e
            of_sigma.addcmul_(of_e, standard_of_draw)
        return of_mu, of_sigma, None


class Perturbation(nn.Module):
    """φp and φm for the layers that `network.perturb` names, the image among them or not.

    Per layer, a twin of it that gives μ and another that gives log σ², both from the layer's input; a layer that is
    neither convolution nor linear gets a 3×3 convolution or a linear map instead. φm is one linear map from the first
    layer's (μ, σ), not the image's, to a, b and τ; maps with a side above 28 are averaged down to it, so that φm does
    not grow with the image. For the Digits LeNet these are 720,643 parameters, and 168 more with its images.
    """

    def __init__(self, network: NamedNetwork, images: Tensor) -> None:
        super().__init__()
        seen = probe(network, images)
        self.precision = network.half
        self.image = network.perturb[0] == IMAGE
        self.read = int(self.image)  # the place of the first layer, which φm reads
        modules = [None if name == IMAGE else network.module.get_submodule(name) for name in network.perturb]
        shapes = list(zip(modules, seen.inputs, seen.outputs, strict=True))
        self.mu = nn.ModuleList([_twin(*shape, start=START_MU) for shape in shapes])
        self.log_variance = nn.ModuleList([_twin(*shape, start=START_LOG_VARIANCE) for shape in shapes])
        self.mixer = nn.Linear(2 * _readable(seen.outputs[self.read]).shape[1], 3)
        self.to(images.device)

    def forward(self, inputs: Sequence[Tensor]) -> Noise:
        """(μ, σ) and (a, b, τ) from the inputs of the perturbed layers. θ gets no gradient through them."""
        inputs = [each.detach() for each in inputs]
        with passing(self.precision, inputs[0].device):
            raws = [[twin(x) for twin, x in zip(twins, inputs, strict=True)] for twins in (self.mu, self.log_variance)]
        mu, sigma = [_mu(raw) for raw in raws[0]], [_sigma(raw) for raw in raws[1]]
        raw = torch.sigmoid(self.mixer(torch.cat([_readable(mu[self.read]), _readable(sigma[self.read])], 1)))
        low, high = BETA_RANGE
        a, b, tau = (low + (high - low) * raw[:, 0], low + (high - low) * raw[:, 1], raw[:, 2])
        return Noise(mu, sigma, a, b, tau, self.image)

    def statistics(self, inputs: Sequence[Tensor]) -> Tensor:
        """Means of the last layer's μ and σ over each channel, (N, F): it lies closest to what the network answers.

        No other layer's are computed, and of the last layer's maps every second row and column will do.
        """
        mu, log_variance = _thinned(self.mu[-1]), _thinned(self.log_variance[-1])
        with passing(self.precision, inputs[-1].device):
            raws = mu(inputs[-1]), log_variance(inputs[-1])
        last = _mu(raws[0]), _sigma(raws[1])
        return torch.cat([mean_of_places(each) for each in last], 1)


def _mu(raw: Tensor) -> Tensor:
    return MU_BOUND * torch.tanh(full(raw) / MU_BOUND)


def _sigma(raw: Tensor) -> Tensor:
    # log σ² is bounded by 0 from above, as −softplus(−s); the root of a sigmoid would have no gradient far below 0.
    return torch.exp(-0.5 * F.softplus(-full(raw)))


def _thinned(twin: nn.Module) -> Callable[[Tensor], Tensor]:
    """A convolution at every second row and column of its output; anything else as it is."""
    if not isinstance(twin, nn.Conv2d):
        return twin
    stride = [2 * each for each in twin.stride]
    rest = {"padding": twin.padding, "dilation": twin.dilation, "groups": twin.groups}
    return partial(F.conv2d, weight=twin.weight, bias=twin.bias, stride=stride, **rest)


@torch.no_grad()
def effect_of(noise: Noise, network: NamedNetwork, images: Tensor, pictured: int) -> dict[str, np.ndarray]:
    """What one draw of the noise does to images, in full (Eq. 10).

    `perturbation` is |e| = |h⁺ − h|, its mean over an image's features, (N, layers); `perturbation_maps` its mean over
    the channels of the first layer (the image, if it is perturbed), of the first images, if that layer gives maps;
    `perturbed_embedding` is z⁺.
    """
    offsets = noise.draw(1)
    in_full = torch.ones(1, 1, len(images), device=images.device)
    with added(network, offsets, in_full), watched(network) as moved:
        network(images)
    means = torch.stack([offset[0].flatten(1).mean(1) for offset in offsets], 1)
    effect = {"perturbation": means.float().cpu().numpy(), "perturbed_embedding": as_vectors(moved.z)}
    if offsets[0].dim() == 5:
        effect["perturbation_maps"] = offsets[0][0, :pictured].mean(1).half().cpu().numpy()
    return effect


def by_fan_in(phi: Perturbation, *, of_image: float, of_layers: float) -> list[dict[str, Any]]:
    """Rates that change a twin's output by about as much, whatever the number of its inputs.

    Adam moves every weight alike: the map of φm, with 100,352 inputs, would be at its bounds after a few steps. The
    twins of the image have a rate of their own.
    """
    of_the_image = {id(p) for twins in (phi.mu, phi.log_variance) for p in twins[0].parameters() if phi.image}
    return [
        {
            "params": [parameter],
            "lr": (of_image if id(parameter) in of_the_image else of_layers)
            / (parameter[0].numel() if parameter.dim() > 1 else 1),
        }
        for parameter in phi.parameters()
    ]


def _twin(layer: nn.Module | None, before: Tensor, after: Tensor, start: float) -> nn.Module:
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
    elif before.shape[1:-1] == after.shape[1:-1] and before.dim() in (2, 3):  # vectors, or tokens
        last = twin = nn.Linear(before.shape[-1], after.shape[-1])
    elif before.dim() == 4 and after.dim() == 4:
        last = nn.Conv2d(before.shape[1], after.shape[1], 3, padding=1)
        resize = nn.AdaptiveAvgPool2d(tuple(after.shape[2:]))
        twin = nn.Sequential(resize, last)
    else:
        raise UserError(
            "perturb", f"a layer turns {tuple(before.shape)} into {tuple(after.shape)}", "maps, tokens or vectors"
        )
    nn.init.constant_(last.bias, start)  # type: ignore[arg-type]
    return twin.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _normal(count: int, like: Tensor, samples: int | None = None) -> Tensor:
    """Standard normal draws, (count, *like.shape), in the memory layout of `like`: mixed layouts are slow to add.

    For so many `samples`, if they are not as many as `like` has.
    """
    n = len(like) if samples is None else samples
    if like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last):
        _, c, h, w = like.shape
        return torch.randn(count, n, h, w, c, device=like.device, dtype=like.dtype).permute(0, 1, 4, 2, 3)
    return torch.randn(count, n, *like.shape[1:], device=like.device, dtype=like.dtype)


def smooth_normal(
    count: int, like: Tensor, generator: torch.Generator | None = None, samples: int | None = None
) -> Tensor:
    """Standard normal at every place of an image, and alike at places near each other: (count, *like.shape).

    Each image draws how smooth: between 2 and 16 independent values along a side, linear in between. White noise is
    what the first convolution averages away; other cameras and places differ in what is larger than a few pixels.
    """
    samples, channels, *size = len(like) if samples is None else samples, *like.shape[1:]
    drawn = torch.zeros(count * samples, channels, *size, dtype=torch.float32)
    which = torch.randint(len(SMOOTH_SIDES), (count * samples,), generator=generator)
    for place, side in enumerate(SMOOTH_SIDES):
        rows, columns = (_between(min(side, along), along) for along in size)
        chosen = which == place
        few = int(chosen.sum()), channels, rows.shape[1], columns.shape[1]
        coarse = torch.randn(few, generator=generator, dtype=torch.float32)
        drawn[chosen] = rows @ coarse @ columns.T
    return drawn.view(count, samples, channels, *size).to(like)


@cache
def _between(few: int, many: int) -> Tensor:
    """(many, few): linear interpolation of `few` values, such that independent ones of variance 1 keep it."""
    weights = F.interpolate(torch.eye(few, dtype=torch.float32)[None], size=many, mode="linear")[0].T
    normalised: Tensor = weights / weights.norm(dim=1, keepdim=True)
    return normalised


def _readable(parameter: Tensor) -> Tensor:
    """μ or σ as a vector for φm: (N, …) → (N, features)."""
    if parameter.dim() == 4 and max(parameter.shape[2:]) > LARGEST_MAP:
        height, width = (min(side, LARGEST_MAP) for side in parameter.shape[2:])
        parameter = F.adaptive_avg_pool2d(parameter, (height, width))
    return parameter.flatten(1)
