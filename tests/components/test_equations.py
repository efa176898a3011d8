from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from onedomain.components.equations import (
    MMD_SCALES,
    ada_objective,
    discriminator_loss,
    gan_penalty,
    mean_over_pixels,
    mmd_penalty,
    reconstruction_error,
    relaxation,
    semantic_distance,
    smoothed_labels,
    task_loss,
    wae_loss,
)

LOGITS = torch.tensor([[0.0, math.log(3.0)], [math.log(9.0), 0.0]], dtype=torch.float64)  # ŷ: ¼ ¾ and 0.9 0.1
DENSE = LOGITS.T.reshape(1, 2, 1, 2)  # one image of two pixels with the same ŷ


def close(value: Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(value, torch.tensor(expected, dtype=value.dtype))


def test_task_loss_is_minus_the_log_of_the_labels_probability() -> None:
    close(task_loss(LOGITS, torch.tensor([1, 0])), [-math.log(0.75), -math.log(0.9)])


def test_task_loss_of_soft_labels_is_eq_2() -> None:
    labels = torch.tensor([[0.5, 0.5], [0.2, 0.8]], dtype=torch.float64)
    expected = [
        -0.5 * math.log(0.25) - 0.5 * math.log(0.75),
        -0.2 * math.log(0.9) - 0.8 * math.log(0.1),
    ]
    close(task_loss(LOGITS, labels), expected)


def test_task_loss_of_dense_labels_is_the_mean_over_the_pixels_of_each_sample() -> None:
    expected = [(-math.log(0.75) - math.log(0.1)) / 2]
    close(task_loss(DENSE, torch.tensor([[[1, 1]]])), expected)
    soft = torch.tensor([[[[0.0, 0.0]], [[1.0, 1.0]]]], dtype=torch.float64)
    close(task_loss(DENSE, soft), expected)


def test_void_pixels_never_count() -> None:
    logits = torch.cat([DENSE, DENSE]).requires_grad_()
    loss = task_loss(logits, torch.tensor([[[1, 255]], [[255, 255]]]), void=255)
    close(loss.detach(), [-math.log(0.75), 0.0])
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient[0, :, 0, 0].abs().min() > 0
    assert not gradient[0, :, 0, 1].any()
    assert not gradient[1].any()


def test_a_soft_label_without_mass_is_void() -> None:
    soft = torch.tensor([[[[0.0, 0.0]], [[1.0, 0.0]]]], dtype=torch.float64)
    close(task_loss(DENSE, soft), [-math.log(0.75)])


def test_a_void_sample_has_no_loss() -> None:
    close(task_loss(LOGITS, torch.tensor([-1, 0]), void=-1), [0.0, -math.log(0.9)])


def test_without_a_void_label_none_is_ignored() -> None:
    with pytest.raises(IndexError):
        task_loss(LOGITS, torch.tensor([1, -100]))


def test_semantic_distance_is_half_the_squared_norm_over_all_feature_dimensions() -> None:
    z = torch.zeros(2, 2, 1, 2)
    z_plus = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]], [[[0.0, 0.0]], [[0.0, 2.0]]]])
    close(semantic_distance(z, z_plus), [15.0, 2.0])


@pytest.mark.parametrize("squared_norm", [relaxation, reconstruction_error])
def test_reconstruction_terms_are_summed_squares_of_each_sample(squared_norm) -> None:
    x = torch.tensor([[[[1.0, 2.0]]], [[[0.0, 5.0]]]])
    close(squared_norm(x, torch.tensor([[[[0.0, 4.0]]], [[[0.0, 2.0]]]])), [5.0, 9.0])


def test_ada_objective_is_eq_3() -> None:
    task, constraint, relax = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0])
    close(ada_objective(task, constraint, relax, alpha=2.0, beta=10.0), [45.0, 54.0])
    close(ada_objective(task, constraint, 0.0, alpha=2.0, beta=10.0), [-5.0, -6.0])


def test_wae_loss_is_eq_6() -> None:
    error = torch.tensor([1.0, 2.0])
    close(wae_loss(error, torch.tensor([0.5, 0.25]), weight=4.0), [3.0, 3.0])
    close(wae_loss(error, torch.tensor(0.5), weight=4.0), [3.0, 4.0])


def test_gan_losses_are_logs_of_the_discriminators_probabilities() -> None:
    logit = math.log(3.0)  # probability ¾ of being from the prior
    close(gan_penalty(torch.tensor([[logit], [-logit]])), [-math.log(0.75), -math.log(0.25)])
    close(discriminator_loss(torch.tensor([[logit]]), torch.tensor([[-logit]])), [-2 * math.log(0.75)])


def test_gan_penalty_keeps_its_gradient_when_the_discriminator_is_sure() -> None:
    logit = torch.tensor([-50.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(gan_penalty(logit).sum(), logit)
    close(gradient, [-1.0])


def textbook_mmd(codes: Tensor, prior: Tensor) -> float:
    def kernel(a: Tensor, b: Tensor) -> float:
        distance = sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True))
        constants = [2 * len(a) * scale for scale in MMD_SCALES]
        return sum(constant / (constant + distance) for constant in constants)

    n, m = len(codes), len(prior)
    within_codes = sum(kernel(codes[i], codes[j]) for i in range(n) for j in range(n) if i != j)
    within_prior = sum(kernel(prior[i], prior[j]) for i in range(m) for j in range(m) if i != j)
    between = sum(kernel(codes[i], prior[j]) for i in range(n) for j in range(m))
    return within_codes / (n * (n - 1)) + within_prior / (m * (m - 1)) - 2 * between / (n * m)


def test_mmd_equals_a_double_loop() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    prior = torch.randn(7, 3, generator=generator, dtype=torch.float64) + 1
    assert mmd_penalty(codes, prior).item() == pytest.approx(textbook_mmd(codes, prior), abs=1e-12)


def test_mmd_is_zero_on_average_for_equal_distributions_and_positive_for_a_shift() -> None:
    generator = torch.Generator().manual_seed(0)

    def estimates(shift: float) -> Tensor:
        pairs = [torch.randn(2, 64, 4, generator=generator) for _ in range(200)]
        return torch.stack([mmd_penalty(codes + shift, prior) for codes, prior in pairs])

    equal, shifted = estimates(0.0), estimates(1.0)
    assert equal.mean().abs() < 3 * equal.std() / math.sqrt(len(equal))
    assert equal.min() < 0  # unbiased: it must fall on both sides of 0
    assert shifted.min() > equal.max()


def test_mmd_has_a_finite_gradient_where_samples_meet() -> None:
    codes = torch.ones(3, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(mmd_penalty(codes, torch.ones(3, 2)), codes)
    assert gradient.isfinite().all()


def test_a_mean_over_pixels_leaves_void_ones_out() -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 100.0]], [[7.0, 7.0], [7.0, 7.0]]])
    labels = torch.tensor([[[0, 1], [0, 9]], [[9, 9], [9, 9]]])
    assert mean_over_pixels(values, labels, void=9).tolist() == [2.0, 0.0]
    assert mean_over_pixels(values, labels).tolist() == [26.5, 7.0]
    assert mean_over_pixels(torch.tensor([3.0]), torch.tensor([1])).tolist() == [3.0]


def test_a_class_that_is_void_gets_no_share_of_smoothed_labels() -> None:
    labels = torch.tensor([[[1, 0]]])
    smooth = smoothed_labels(labels, 4, torch.ones(1), rho=0.8, void=0)
    assert smooth[0, :, 0, 0].tolist() == pytest.approx([0.0, 0.8, 0.1, 0.1])
    assert smooth[0, :, 0, 1].tolist() == [0.0] * 4
