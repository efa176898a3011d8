"""SDG's two costs, the meta step and the ascent, on the Digits LeNet: ours against the textbook.

The textbook computes the same mathematics with the default memory layout and unfused Adam; its meta step keeps the
graph through the inner step and passes over one domain after the other, its ascent computes weight gradients too.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from bench.timing import compare
from onedomain.components.ascent import ascend, frozen
from onedomain.components.equations import ada_objective, relaxation, semantic_distance, task_loss
from onedomain.components.meta import batch_losses, meta_gradient
from onedomain.components.wae import DenseAutoEncoder
from onedomain.networks import build_network

BATCH, DOMAINS, RATE = 32, 3, 1e-4


def run() -> None:
    peak = matmul_peak()
    print(f"matrix multiply, 1 thread: {peak / 1e9:.0f} GFLOP/s")
    torch.manual_seed(0)
    report("sdg meta step, source and 3 domains of 32 images", *meta_step(), peak)
    report("sdg ascent step, 100 images", *ascent_step(), peak)


def matmul_peak() -> float:
    a, b = torch.rand(1024, 1024), torch.rand(1024, 1024)
    best = float("inf")
    for _ in range(10):
        begun = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - begun)
    return 2 * 1024**3 / best


def report(what: str, ours: Callable[[], object], textbook: Callable[[], object], peak: float) -> None:
    with FlopCounterMode(display=False) as counter:
        ours()
    fast, slow = compare(ours, textbook)
    share = counter.get_total_flops() / fast / peak
    print(
        f"{what}, LeNet, 1 thread: {1e3 * fast:.0f} ms; textbook {1e3 * slow:.0f} ms; "
        f"ratio {slow / fast:.2f}; {share:.0%} of the matrix-multiply peak"
    )


def batches(count: int, size: int, layout: torch.memory_format) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        (
            torch.rand(size, 3, 32, 32, generator=generator).contiguous(memory_format=layout),
            torch.randint(10, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def meta_step() -> tuple[Callable[[], object], Callable[[], object]]:
    module = build_network("lenet", 10, (32, 32, 3)).module
    plain = copy.deepcopy(module)
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    fused = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)
    source, *domains = batches(1 + DOMAINS, BATCH, torch.channels_last)

    def ours() -> None:
        meta = meta_gradient(module, lambda m: batch_losses(m, [source]), lambda m: batch_losses(m, domains), rate=RATE)
        meta.assign(module)
        fused.step()

    unfused = torch.optim.Adam(plain.parameters(), lr=1e-4)
    (images, labels), *others = batches(1 + DOMAINS, BATCH, torch.contiguous_format)

    def textbook() -> None:
        theta = dict(plain.named_parameters())
        loss = functional.cross_entropy(plain(images), labels)
        gradients = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
        theta_hat = {name: p - RATE * g for (name, p), g in zip(theta.items(), gradients, strict=True)}
        for each, its in others:
            loss = loss + functional.cross_entropy(functional_call(plain, theta_hat, (each,)), its)
        unfused.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        unfused.step()

    return ours, textbook


def ascent_step() -> tuple[Callable[[], object], Callable[[], object]]:
    network = build_network("lenet", 10, (32, 32, 3))
    plain = copy.deepcopy(network.module)
    network.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    auto_encoder = DenseAutoEncoder((3, 32, 32)).eval()
    [(images, labels)] = batches(1, 100, torch.channels_last)
    z = network.embed(images)[1].detach()

    def ours() -> None:
        def objective(x: Tensor) -> Tensor:
            x = x.view_as(x)  # the counter of operations cannot take a leaf
            logits, z_plus = network.embed(x)
            relaxed = relaxation(x, auto_encoder(x))
            return ada_objective(task_loss(logits, labels), semantic_distance(z, z_plus), relaxed, 1.0, 1.0)

        with frozen(network.module, auto_encoder):
            ascend(objective, images, rate=0.1, steps=1)

    [(start, classes)] = batches(1, 100, torch.contiguous_format)
    features, head = plain.features, plain.head
    assert isinstance(features, nn.Module)
    assert isinstance(head, nn.Module)

    def textbook() -> None:
        x = start.clone().requires_grad_()
        embedded = features(x)
        task = functional.cross_entropy(head(embedded), classes, reduction="none")
        constraint = 0.5 * (embedded - z).square().sum(1)
        relaxed = (x - auto_encoder(x)).square().flatten(1).sum(1)
        (task - constraint + relaxed).sum().backward()
        assert x.grad is not None
        (x + 0.1 * x.grad).detach()

    return ours, textbook
