from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from onedomain.components.equations import task_loss
from onedomain.components.meta import MetaGradient, Model, Parameters, batch_losses, meta_gradient

Batch = tuple[Tensor, Tensor]
RATE = 0.3  # large, so that the second order shows


def network(normalised: bool = False) -> nn.Module:
    torch.manual_seed(0)
    middle: list[nn.Module] = [nn.BatchNorm1d(5)] if normalised else []
    return nn.Sequential(nn.Linear(4, 5), *middle, nn.Tanh(), nn.Linear(5, 3)).double()


def batches(*sizes: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(n, 4, generator=generator, dtype=torch.float64),
            torch.randint(3, (n,), generator=generator),
        )
        for n in sizes
    ]


def inner_step(
    params: Parameters, loss: Tensor | Callable[[Parameters], Tensor], *, rate: float, second_order: bool = True
) -> Parameters:
    """Eq. 8 as written, θ̂ = θ − η∇L(θ): tensors that remember how they came from θ."""
    value = loss(params) if callable(loss) else loss
    moving = {name: parameter for name, parameter in params.items() if parameter.requires_grad}
    gradients = torch.autograd.grad(value, list(moving.values()), create_graph=second_order, allow_unused=True)
    moves = {name: g for name, g in zip(moving, gradients, strict=True) if g is not None}
    return {name: start - rate * moves[name] if name in moves else start for name, start in params.items()}


def gradient_of(net: nn.Module, source: Batch, domains: list[Batch], **settings: int | bool) -> Parameters:
    on_source, on_domains = partial(batch_losses, batches=[source]), partial(batch_losses, batches=domains)
    return meta_gradient(net, on_source, on_domains, rate=RATE, **settings).gradients


def textbook_objective(net: nn.Module, source: Batch, domains: list[Batch], inner_steps: int) -> Callable[..., Tensor]:
    """Eq. 8 and 9 as a function of θ, with one pass per domain and the graph through every step."""

    def loss(params: Parameters, batch: Batch) -> Tensor:
        buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
        return task_loss(functional_call(net, {**params, **buffers}, (batch[0],)), batch[1]).mean()

    def objective(theta: Parameters) -> Tensor:
        theta_hat = theta
        for _ in range(inner_steps):
            gradients = torch.autograd.grad(loss(theta_hat, source), list(theta_hat.values()), create_graph=True)
            moves = zip(theta_hat.items(), gradients, strict=True)
            theta_hat = {name: value - RATE * gradient for (name, value), gradient in moves}
        total = loss(theta, source)
        for domain in domains:
            total = total + loss(theta_hat, domain)
        return total

    return objective


def textbook_gradient(net: nn.Module, source: Batch, domains: list[Batch], inner_steps: int = 1) -> Parameters:
    theta = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    total = textbook_objective(net, source, domains, inner_steps)(theta)
    return dict(zip(theta, torch.autograd.grad(total, list(theta.values())), strict=True))


def assert_same(left: Parameters, right: Parameters, atol: float = 1e-12) -> None:
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(left[name], right[name], rtol=0, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


def distance(left: Parameters, right: Parameters) -> float:
    return max((left[name] - right[name]).abs().max().item() for name in left)


def test_inner_step_is_eq_8() -> None:
    theta = {"w": torch.tensor([1.0, 2.0], requires_grad=True), "b": torch.tensor(3.0, requires_grad=True)}
    theta_hat = inner_step(theta, lambda p: (p["w"] ** 2).sum() * p["b"], rate=0.1)
    torch.testing.assert_close(theta_hat["w"], torch.tensor([1 - 0.6, 2 - 1.2]))
    torch.testing.assert_close(theta_hat["b"], torch.tensor(3 - 0.5))


@pytest.mark.parametrize(("second_order", "expected"), [(True, 2 * 0.4 * (1 - 0.6)), (False, 2 * 0.4)])
def test_second_order_differentiates_through_the_gradient(second_order: bool, expected: float) -> None:
    w = torch.tensor(1.0, requires_grad=True)
    w_hat = inner_step({"w": w}, 3 * w**2, rate=0.1, second_order=second_order)["w"]  # 1 − 0.1·6 = 0.4
    (gradient,) = torch.autograd.grad(w_hat**2, w)
    torch.testing.assert_close(gradient, torch.tensor(expected))


def test_parameters_that_are_unused_or_frozen_keep_their_value() -> None:
    theta = {
        "used": torch.ones(2, requires_grad=True),
        "unused": torch.ones(2, requires_grad=True),
        "frozen": torch.ones(2),
    }
    theta_hat = inner_step(theta, lambda p: (p["used"] * p["frozen"]).sum(), rate=0.5)
    torch.testing.assert_close(theta_hat["used"], torch.full((2,), 0.5))
    assert theta_hat["unused"] is theta["unused"]
    assert theta_hat["frozen"] is theta["frozen"]


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("inner_steps", [1, 3])
def test_meta_gradient_equals_finite_differences(inner_steps: int, normalised: bool) -> None:
    net = network(normalised)
    source, *domains = batches(6, 5, 4)
    gradients = gradient_of(net, source, domains, inner_steps=inner_steps)
    objective = textbook_objective(net, source, domains, inner_steps)
    theta = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    h = 1e-5
    for name, value in theta.items():
        for index in range(value.numel()):

            def at(nudge: float, name: str = name, value: Tensor = value, index: int = index) -> float:
                nudged = value.detach().clone()
                nudged.view(-1)[index] += nudge
                return objective({**theta, name: nudged.requires_grad_()}).item()

            slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)  # error of order h⁴
            assert gradients[name].view(-1)[index].item() == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("inner_steps", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(6, 6), (6, 5, 4, 7)])
def test_meta_gradient_equals_the_textbook_graph(sizes: tuple[int, ...], inner_steps: int, normalised: bool) -> None:
    net = network(normalised)
    source, *domains = batches(*sizes)
    gradients = gradient_of(net, source, domains, inner_steps=inner_steps)
    assert_same(gradients, textbook_gradient(net, source, domains, inner_steps))


def test_meta_gradient_equals_the_explicit_hessian() -> None:
    net = nn.Linear(4, 3).double()
    source, domain = batches(6, 5)
    shapes = {name: p.shape for name, p in net.named_parameters()}

    def loss(flat: Tensor, batch: Batch) -> Tensor:
        parts = flat.split([shape.numel() for shape in shapes.values()])
        params = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return task_loss(functional_call(net, params, (batch[0],)), batch[1]).mean()

    theta = torch.cat([p.detach().flatten() for p in net.parameters()]).requires_grad_()
    (g,) = torch.autograd.grad(loss(theta, source), theta)
    theta_hat = (theta - RATE * g).detach().requires_grad_()
    (g_hat,) = torch.autograd.grad(loss(theta_hat, domain), theta_hat)
    hessian = torch.autograd.functional.hessian(lambda flat: loss(flat, source), theta.detach())
    expected = g + g_hat - RATE * hessian @ g_hat
    ours = torch.cat([gradient.flatten() for gradient in gradient_of(net, source, [domain]).values()])
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_inner_step_and_meta_gradient_are_the_same_mathematics() -> None:
    net = network()
    source, domain = batches(6, 5)
    theta = dict(net.named_parameters())
    model = Model(net, theta, {})
    on_source = batch_losses(model, [source]).sum()
    theta_hat = inner_step(theta, on_source, rate=RATE)
    total = on_source + batch_losses(Model(net, theta_hat, {}), [domain]).sum()
    expected = dict(zip(theta, torch.autograd.grad(total, list(theta.values())), strict=True))
    assert_same(gradient_of(net, source, [domain]), expected)


def test_first_order_is_the_sum_of_two_plain_gradients_and_not_the_second_order() -> None:
    net = network()
    source, domain = batches(6, 5)
    theta = dict(net.named_parameters())

    def plain(params: Parameters, batch: Batch) -> Parameters:
        leaves = {name: value.detach().requires_grad_() for name, value in params.items()}
        loss = task_loss(functional_call(net, leaves, (batch[0],)), batch[1]).mean()
        return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))

    g = plain(theta, source)
    g_hat = plain({name: theta[name] - RATE * g[name] for name in theta}, domain)
    first = gradient_of(net, source, [domain], second_order=False)
    assert_same(first, {name: g[name] + g_hat[name] for name in theta})
    assert distance(first, gradient_of(net, source, [domain])) > 1e-3


def test_losses_are_the_mean_of_each_domain() -> None:
    net = network()
    source, *domains = batches(6, 5, 2)
    meta = meta_gradient(net, partial(batch_losses, batches=[source]), partial(batch_losses, batches=domains), rate=0.0)
    expected = torch.stack([task_loss(net(x), y).mean() for x, y in (source, *domains)]).detach()
    torch.testing.assert_close(torch.cat([meta.source_loss, meta.domain_losses]), expected, rtol=0, atol=1e-12)
    assert not meta.source_loss.requires_grad
    assert not meta.domain_losses.requires_grad


class CountsPasses(nn.Linear):
    passes = 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        return super().forward(x)


@pytest.mark.parametrize(("layer", "passes"), [(nn.Tanh(), 2), (nn.BatchNorm1d(3).double(), 4)])
def test_domains_share_a_pass_unless_the_network_mixes_samples(layer: nn.Module, passes: int) -> None:
    count = CountsPasses(4, 3).double()
    source, *domains = batches(6, 5, 4, 3)
    gradient_of(nn.Sequential(count, layer), source, domains)
    assert count.passes == passes


def test_batchnorm_in_eval_mode_mixes_nothing() -> None:
    net = network(normalised=True)
    assert Model(net, {}, {}).mixes_samples
    assert not Model(net.eval(), {}, {}).mixes_samples


@pytest.mark.parametrize("inner_steps", [1, 3])
def test_running_statistics_move_once_a_meta_step_by_the_source_at_theta(inner_steps: int) -> None:
    net, reference = network(normalised=True), network(normalised=True)
    source, *domains = batches(6, 5, 4)
    with torch.no_grad():
        reference(source[0])
    gradient_of(net, source, domains, inner_steps=inner_steps)
    assert int(net[1].num_batches_tracked) == 1
    for name, buffer in reference.named_buffers():
        assert torch.equal(dict(net.named_buffers())[name], buffer), name


def test_nothing_is_written_into_the_network_but_by_assign() -> None:
    net = network()
    source, domain = batches(6, 5)
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    meta = meta_gradient(
        net, partial(batch_losses, batches=[source]), partial(batch_losses, batches=[domain]), rate=RATE
    )
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(p, before[name]) for name, p in net.named_parameters())
    meta.assign(net)
    torch.optim.SGD(net.parameters(), lr=0.5).step()
    assert_same(dict(net.named_parameters()), {n: before[n] - 0.5 * meta.gradients[n] for n in before})


def test_frozen_parameters_stay_out_and_unused_ones_get_zero() -> None:
    net = network()
    net[0].requires_grad_(False)
    net.register_parameter("unused", nn.Parameter(torch.ones(2, dtype=torch.float64)))
    source, domain = batches(6, 5)
    gradients = gradient_of(net, source, [domain])
    assert set(gradients) == {"2.weight", "2.bias", "unused"}
    assert not gradients["unused"].any()
    expected = textbook_gradient(net[1:], (net[0](source[0]), source[1]), [(net[0](domain[0]), domain[1])])
    assert_same({name: gradients[name] for name in ("2.weight", "2.bias")}, expected)


def test_a_source_loss_without_curvature_and_shared_gradients() -> None:
    """∇ of a linear loss has no graph, and here is one expanded tensor that both parameters share."""
    net = nn.Linear(2, 1).double()

    def linear(model: Model) -> Tensor:
        return model.params["weight"].sum() + model.params["bias"].sum()

    gradients = meta_gradient(net, linear, linear, rate=RATE).gradients
    torch.testing.assert_close(gradients["weight"], torch.full((1, 2), 2.0, dtype=torch.float64))
    torch.testing.assert_close(gradients["bias"], torch.full((1,), 2.0, dtype=torch.float64))


def test_parameters_that_only_the_domains_use_get_their_plain_gradient() -> None:
    """As φ of Uncertain SDG: it shapes the meta-test alone, so the inner step does not move it."""
    net = nn.ModuleDict({"task": nn.Linear(4, 3), "noise": nn.Linear(1, 3)}).double()
    net.forward = lambda x, perturb: net["task"](x) + perturb * net["noise"](x[:, :1])
    source, domain = batches(6, 5)

    def on_source(model: Model) -> Tensor:
        return task_loss(model(source[0], perturb=0.0), source[1]).mean()

    def on_domain(model: Model) -> Tensor:
        return task_loss(model(domain[0], perturb=1.0), domain[1]).mean()

    gradients = meta_gradient(net, on_source, on_domain, rate=RATE).gradients
    theta = dict(net.named_parameters())
    theta_hat = inner_step(theta, on_source(Model(net, theta, {})), rate=RATE)
    total = on_source(Model(net, theta, {})) + on_domain(Model(net, theta_hat, {}))
    expected = dict(zip(theta, torch.autograd.grad(total, list(theta.values())), strict=True))
    assert gradients["noise.weight"].abs().max() > 0
    assert_same(gradients, expected)


def test_a_gradient_in_another_layout_is_stepped_on_rightly() -> None:
    torch.manual_seed(0)
    module = nn.Conv2d(3, 4, 3)
    module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)
    gradient = torch.randn(4, 3, 3, 3)
    before = module.weight.detach().clone()
    meta = MetaGradient({"weight": gradient, "bias": torch.zeros(4)}, torch.zeros(1), torch.zeros(1))
    meta.assign(module)
    torch.optim.Adam(module.parameters(), lr=1.0, fused=True).step()
    assert torch.equal((before - module.weight.detach()).sign(), gradient.sign())
