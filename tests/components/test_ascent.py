from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from onedomain.components.ascent import ascend, frozen
from onedomain.components.equations import ada_objective, relaxation, semantic_distance, task_loss

ALPHA, BETA = 0.7, 0.05


class Problem:
    """A smooth task model and auto-encoder in float64 with one small batch: L_ADA as the paper has it."""

    def __init__(self, samples: int = 6) -> None:
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 5)).double()
        self.classifier = nn.Sequential(nn.Tanh(), nn.Linear(5, 3)).double()
        self.auto_encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(108, 4),
            nn.Tanh(),
            nn.Linear(4, 108),
            nn.Sigmoid(),
            nn.Unflatten(1, (3, 6, 6)),
        ).double()
        self.x = torch.rand(samples, 3, 6, 6, dtype=torch.float64)
        self.labels = torch.randint(3, (samples,))
        self.networks = (self.features, self.classifier, self.auto_encoder)

    def objective(self, rows: slice = slice(None)) -> Callable[[Tensor], Tensor]:
        with torch.no_grad():
            z = self.features(self.x[rows])

        def ada(x_plus: Tensor) -> Tensor:
            z_plus = self.features(x_plus)
            return ada_objective(
                task_loss(self.classifier(z_plus), self.labels[rows]),
                semantic_distance(z, z_plus),
                relaxation(x_plus, self.auto_encoder(x_plus)),
                ALPHA,
                BETA,
            )

        return ada


def test_a_step_is_the_finite_difference_gradient() -> None:
    problem = Problem(samples=2)
    objective = problem.objective()
    moved = ascend(objective, problem.x, rate=1.0, steps=1) - problem.x
    numeric = torch.zeros_like(problem.x)
    h = 1e-5
    with torch.no_grad():
        for index in range(problem.x[0].numel()):
            # Samples do not touch each other, so one evaluation gives the same pixel of both.
            nudge = torch.zeros_like(problem.x).view(2, -1)
            nudge[:, index] = h
            nudge = nudge.view_as(problem.x)
            slope = (objective(problem.x + nudge) - objective(problem.x - nudge)) / (2 * h)
            numeric.view(2, -1)[:, index] = slope
    torch.testing.assert_close(moved, numeric, rtol=0, atol=1e-8)


def test_ascent_equals_a_textbook_loop_over_samples() -> None:
    problem = Problem()
    x_plus = ascend(problem.objective(), problem.x, rate=0.5, steps=4)
    for i in range(len(problem.x)):
        objective = problem.objective(slice(i, i + 1))
        image = problem.x[i : i + 1].clone()
        for _ in range(4):
            image = image.detach().requires_grad_()
            objective(image)[0].backward()
            image = image + 0.5 * image.grad
        torch.testing.assert_close(x_plus[i : i + 1], image.detach(), rtol=0, atol=1e-12)


def test_ascent_raises_the_objective_of_every_sample() -> None:
    problem = Problem(samples=32)
    objective = problem.objective()
    values = [objective(ascend(objective, problem.x, rate=0.05, steps=steps)).detach() for steps in (0, 1, 5, 20)]
    for lower, higher in pairwise(values):
        assert (higher > lower).all()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_images_do_not_depend_on_the_batch_size(batch_size: int) -> None:
    problem = Problem(samples=9)
    whole = ascend(problem.objective(), problem.x, rate=0.5, steps=5)
    rows = [slice(start, start + batch_size) for start in range(0, 9, batch_size)]
    parts = [ascend(problem.objective(row), problem.x[row], rate=0.5, steps=5) for row in rows]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-12)


def test_only_the_input_gets_a_gradient_and_the_result_has_no_graph() -> None:
    problem = Problem()
    x_plus = ascend(problem.objective(), problem.x, rate=0.5, steps=2)
    assert not x_plus.requires_grad
    assert not problem.x.requires_grad
    assert all(parameter.grad is None for network in problem.networks for parameter in network.parameters())


def test_frozen_weights_give_the_same_images() -> None:
    problem = Problem()
    expected = ascend(problem.objective(), problem.x, rate=0.5, steps=3)
    with frozen(*problem.networks):
        x_plus = ascend(problem.objective(), problem.x, rate=0.5, steps=3)
    assert torch.equal(x_plus, expected)


def test_the_start_is_left_alone_and_zero_steps_give_a_copy() -> None:
    x = torch.zeros(2, 3)
    ascend(lambda x: x.sum(1), x, rate=1.0, steps=3)
    assert not x.any()
    copy = ascend(lambda x: x.sum(1), x, rate=1.0, steps=0)
    copy.add_(1)
    assert not x.any()


def test_project_keeps_the_range_after_each_step() -> None:
    seen = []

    def objective(x: Tensor) -> Tensor:
        seen.append(x.max().item())
        return x.sum(1)

    x_plus = ascend(objective, torch.zeros(1, 1), rate=1.0, steps=3, project=lambda x: x.clamp(0, 0.5))
    assert seen == [0.0, 0.5, 0.5]
    assert x_plus.item() == 0.5


def test_the_memory_layout_is_kept() -> None:
    x = torch.rand(2, 3, 8, 8).to(memory_format=torch.channels_last)
    # This objective hands back its gradient in the other layout.
    x_plus = ascend(lambda x: (x.contiguous() ** 2).flatten(1).sum(1), x, rate=0.1, steps=2)
    assert x_plus.is_contiguous(memory_format=torch.channels_last)
    assert not x_plus.is_contiguous()


@pytest.mark.parametrize("reduced", [torch.mean, lambda value: value.unsqueeze(1)])
def test_an_objective_that_is_not_one_value_per_sample_is_refused(
    reduced: Callable[[Tensor], Tensor],
) -> None:
    with pytest.raises(ValueError, match="each of 2 samples"):
        ascend(lambda x: reduced(x.sum(1)), torch.zeros(2, 3), rate=1.0, steps=1)


def test_frozen_restores_exactly_what_was_even_after_an_error() -> None:
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    layer.bias.requires_grad_(False)

    def fail_while_frozen() -> None:
        with frozen(layer, other, other):
            assert not any(p.requires_grad for module in (layer, other) for p in module.parameters())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_while_frozen()
    assert layer.weight.requires_grad
    assert not layer.bias.requires_grad
    assert other.weight.requires_grad


def test_the_gradient_of_the_robust_surrogate_is_the_gradient_at_the_worst_case() -> None:
    """§5: ∇θφ(θ; x) = ∇θL_task(θ; x*), where φ = sup over x⁺ of L_ADA.

    Here L_task = ½(θ·x⁺ − y)², c = ½‖x − x⁺‖² and d = ½‖x⁺ − a‖², with α > β + ‖θ‖², so L_ADA is a concave
    quadratic in x⁺ whose maximum solves a linear system; ∇θφ is taken by finite differences of that maximum.
    """
    torch.manual_seed(0)
    theta = torch.randn(4, dtype=torch.float64)
    x, anchor = torch.randn(2, 4, dtype=torch.float64)
    y, alpha, beta = 0.3, float(theta @ theta) + 3.0, 0.5

    def task(theta: Tensor, x_plus: Tensor) -> Tensor:
        return 0.5 * (x_plus @ theta - y).square()

    def ada(theta: Tensor, x_plus: Tensor) -> Tensor:
        away = 0.5 * (x_plus - anchor).square().sum(1)
        return ada_objective(task(theta, x_plus), semantic_distance(x[None], x_plus), away, alpha, beta)

    def worst_case(theta: Tensor) -> Tensor:
        curvature = torch.outer(theta, theta) + (beta - alpha) * torch.eye(4, dtype=torch.float64)
        return torch.linalg.solve(curvature, y * theta - alpha * x + beta * anchor)[None]

    def surrogate(theta: Tensor) -> Tensor:
        return ada(theta, worst_case(theta))

    climbed = ascend(lambda x_plus: ada(theta, x_plus), x[None], rate=0.1, steps=500)
    torch.testing.assert_close(climbed, worst_case(theta), rtol=0, atol=1e-10)

    at_worst_case = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(task(at_worst_case, climbed), at_worst_case)
    h = 1e-5
    nudges = h * torch.eye(4, dtype=torch.float64)
    numeric = torch.cat([(surrogate(theta + nudge) - surrogate(theta - nudge)) / (2 * h) for nudge in nudges])
    torch.testing.assert_close(gradient, numeric, rtol=0, atol=1e-7)
    # The gradient at the source sample itself is another one: the equality is not trivial.
    (at_source,) = torch.autograd.grad(task(at_worst_case, x[None]), at_worst_case)
    assert (at_source - numeric).abs().max() > 0.1
