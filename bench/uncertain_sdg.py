"""A step of Uncertain SDG with 10 Monte-Carlo draws on the Digits LeNet: ours against the textbook.

The textbook computes the same mathematics in the default memory layout with unfused Adam: one pass for each draw,
mixed and unmixed, each with its own pass through φ; the graph goes through the inner step; φ's ascent is a backward
pass of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from bench.sdg import batches
from bench.timing import compare
from onedomain.components.equations import hard_labels, mixup, perturbed, semantic_distance, smoothed_labels, task_loss
from onedomain.components.perturb import smooth_normal
from onedomain.data.domain import Batch, Domain
from onedomain.methods.base import Setup
from onedomain.methods.uncertain_sdg import UncertainSDG
from onedomain.networks import build_network

BATCH, DRAWS = 32, 10
SCORED = 250


def run() -> None:
    for draws in (DRAWS, 1):
        torch.manual_seed(0)
        ours, textbook = steps(draws)
        fast, slow = compare(ours, textbook, rounds=5)
        print(
            f"uncertain-sdg step, {draws} Monte-Carlo draws, mixed and unmixed, LeNet, batch {BATCH}, 1 thread: "
            f"{1e3 * fast:.0f} ms; textbook {1e3 * slow:.0f} ms; ratio {slow / fast:.2f}"
        )
    scoring()


def scoring() -> None:
    """A pass that also gives the statistics of (μ, σ), as `evaluate` makes it, against one of the network alone."""
    torch.manual_seed(0)
    [(images, _)] = batches(1, SCORED, torch.channels_last)
    network = build_network("lenet", 10, (32, 32, 3))
    method = UncertainSDG()
    method.set_up(Setup(network, images, torch.device("cpu")))

    def plain() -> None:
        with torch.no_grad():
            network.module.eval()(images)

    scored, passed = compare(lambda: method.predictive(images, draws=0), plain, rounds=9)
    print(
        f"uncertain-sdg scoring, LeNet, {SCORED} images, 1 thread: {1e3 * scored:.0f} ms; plain pass "
        f"{1e3 * passed:.0f} ms; ratio {scored / passed:.2f}"
    )


def steps(draws: int) -> tuple[Callable[[], object], Callable[[], object]]:
    network = build_network("lenet", 10, (32, 32, 3))
    plain = copy.deepcopy(network.module)
    [(images, labels)] = batches(1, BATCH, torch.channels_last)
    method = UncertainSDG(domains=draws, warm_up=0, perturbed_weight=1.0, mixup_weight=0.01, adversary="throughout")
    pixels = (255 * images.permute(0, 2, 3, 1)).byte().numpy()
    source = Domain("random", "train", pixels, labels.numpy(), tuple("0123456789"))
    method.set_up(Setup(network, images, torch.device("cpu"), source))
    network.module.train()

    def ours() -> None:
        method.step(Batch(images, labels), 0)

    phi = copy.deepcopy(method.phi)
    settings = method.settings
    ceiling = settings.ceiling * math.log(10)
    optimiser = torch.optim.Adam(plain.parameters(), lr=1e-4)
    climber = torch.optim.Adam(phi.parameters(), lr=settings.adversary_rate, maximize=True)
    [(x, y)] = batches(1, BATCH, torch.contiguous_format)
    f = dict(plain.features.named_children())  # type: ignore[union-attr]

    def forward(theta: Mapping[str, Tensor], noisy: bool, mixed: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, z and labels of one pass; noise and mixing drawn for this pass alone."""
        target = hard_labels(y, 10)
        conv1 = partial(functional.conv2d, weight=theta["features.conv1.weight"], bias=theta["features.conv1.bias"])
        h1 = conv1(x)
        noise = phi([x, x, functional.relu(functional.max_pool2d(h1, 2)).detach()]) if noisy else None
        mix = noise.draw_mix(1)[0] if noise is not None and mixed else torch.zeros(len(x))
        if noise is not None:
            e = noise.mu[0] + noise.sigma[0] * smooth_normal(1, noise.mu[0])[0]
            h1 = conv1(mixup(x, perturbed(x, e), mix))
            e = noise.mu[1] + noise.sigma[1] * torch.randn_like(noise.mu[1])
            h1 = mixup(h1, perturbed(h1, e), mix)
            if mixed:
                target = mixup(target, smoothed_labels(y, 10, noise.tau, settings.rho), mix)
        a1 = functional.relu(f["pool1"](h1))
        h2 = functional.conv2d(a1, theta["features.conv2.weight"], theta["features.conv2.bias"])
        if noise is not None:
            e = noise.mu[2] + noise.sigma[2] * torch.randn_like(noise.mu[2])
            h2 = mixup(h2, perturbed(h2, e), mix)
        a2 = functional.relu(f["pool2"](h2)).flatten(1)
        a3 = functional.relu(functional.linear(a2, theta["features.fc1.weight"], theta["features.fc1.bias"]))
        z = functional.relu(functional.linear(a3, theta["features.fc2.weight"], theta["features.fc2.bias"]))
        return functional.linear(z, theta["head.weight"], theta["head.bias"]), z, target

    def textbook() -> None:
        theta: dict[str, Tensor] = dict(plain.named_parameters())
        logits = functional_call(plain, theta, (x,))
        loss = functional.cross_entropy(logits, y)
        gradients = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
        theta_hat = {name: p - 1e-4 * g for (name, p), g in zip(theta.items(), gradients, strict=True)}
        _, z, _ = forward(theta, noisy=False, mixed=False)
        climbed = torch.zeros(())
        for _ in range(draws):
            for weight, mixed in ((1.0, False), (settings.mixup_weight, True)):
                logits, z_plus, target = forward(theta_hat, noisy=True, mixed=mixed)
                losses = task_loss(logits, target)
                constraint = (semantic_distance(z.detach(), z_plus) / (z.shape[1] / 2)).mean()
                loss = loss + weight * losses.mean()
                upwards = torch.where(losses < ceiling, losses, 2 * ceiling - losses).mean()
                climbed = climbed + weight * (upwards - settings.alpha * constraint)
        optimiser.zero_grad()
        climber.zero_grad()
        of_phi = torch.autograd.grad(climbed, list(phi.parameters()), retain_graph=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for parameter, gradient in zip(phi.parameters(), of_phi, strict=True):
            parameter.grad = gradient
        optimiser.step()
        climber.step()

    return ours, textbook
