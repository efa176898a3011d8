"""The paper's equations as pure functions: one value per sample where the paper sums over samples.

Whoever calls them takes the mean over a batch (training) or the sum (ascent), so that no value here depends
on which other samples share the batch. The one exception is the MMD, which compares two sets of samples.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

# The WAE paper's scales of the inverse multiquadratic kernel: distances from near to far all give a gradient.
MMD_SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

# An ignore_index that is no label: torch's default of −100 would let a label of −100 pass in silence.
_NO_VOID = torch.iinfo(torch.int64).min


def task_loss(logits: Tensor, labels: Tensor, void: int | None = None) -> Tensor:
    """Eq. 2, cross-entropy: −Σᵢ yᵢ log ŷᵢ, for each sample.

    Logits (N, C), or (N, C, H, W) when each pixel has a label; labels (N,) or (N, H, W), or soft ones in the shape of
    the logits → (N,). Of dense labels it is the mean over the pixels that count, 0 for a sample without one: pixels
    labelled `void` do not, nor soft labels without any mass.

    >>> task_loss(torch.tensor([[0.0, 0.0], [0.0, 0.0]]), torch.tensor([1, 255]), void=255)
    tensor([0.6931, 0.0000])
    """
    if labels.is_floating_point():
        counted = labels.sum(1) > 0
        loss = F.cross_entropy(logits, labels, reduction="none")
    else:
        ignored = _NO_VOID if void is None else void
        counted = labels != ignored
        loss = F.cross_entropy(logits, labels, ignore_index=ignored, reduction="none")
    if loss.dim() == 1:
        return loss
    return loss.flatten(1).sum(1) / counted.flatten(1).sum(1).clamp(min=1)


def mean_over_pixels(values: Tensor, labels: Tensor, void: int | None = None) -> Tensor:
    """(N,) as it is; of (N, H, W) the mean over the pixels whose label is not `void`, 0 for a sample without one.

    >>> mean_over_pixels(torch.tensor([[[1.0, 3.0, 8.0]]]), torch.tensor([[[0, 1, 255]]]), void=255)
    tensor([2.])
    """
    if values.dim() == 1:
        return values
    counted = torch.ones_like(labels, dtype=torch.bool) if void is None else labels != void
    return (values * counted).flatten(1).sum(1) / counted.flatten(1).sum(1).clamp(min=1)


def semantic_distance(z: Tensor, z_plus: Tensor) -> Tensor:
    """Eq. 5, L_const: ½‖z − z⁺‖², how far the augmented samples moved in the embedding space, (N, …) → (N,).

    The paper's +∞ for a changed label is left out, as in the paper: an augmented sample keeps its label.

    >>> semantic_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([12.5000])
    """
    return 0.5 * _squared_norm(z - z_plus)


def relaxation(x_plus: Tensor, reconstruction: Tensor) -> Tensor:
    """Eq. 7, L_relax: ‖x⁺ − V(x⁺)‖², how badly the frozen auto-encoder knows the augmented images, (N, …) → (N,).

    Summed over pixels, not averaged.

    >>> relaxation(torch.ones(1, 3, 2, 2), torch.zeros(1, 3, 2, 2))
    tensor([12.])
    """
    return _squared_norm(x_plus - reconstruction)


def ada_objective(
    task: Tensor, constraint: Tensor | float, relaxation: Tensor | float, alpha: float, beta: float
) -> Tensor:
    """Eq. 3, L_ADA = L_task − α·L_const + β·L_relax, which the augmented samples climb, (N,).

    α weighs staying near in the embedding space, β moving away in the input space. A term left out may be 0.0.

    >>> ada_objective(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([3.0]), alpha=0.5, beta=10.0)
    tensor([30.])
    """
    return task - alpha * constraint + beta * relaxation


def reconstruction_error(x: Tensor, reconstruction: Tensor) -> Tensor:
    """Eq. 6, first term: ‖G(Q(x)) − x‖², summed over pixels, (N, …) → (N,).

    >>> reconstruction_error(torch.zeros(2, 1, 1, 2), torch.tensor([[[[1.0, 2.0]]], [[[0.0, 0.0]]]]))
    tensor([5., 0.])
    """
    return _squared_norm(reconstruction - x)


def reconstruction_cross_entropy(x: Tensor, reconstruction: Tensor) -> Tensor:
    """Eq. 6, first term, as the released code has it: binary cross-entropy between pixels, summed, (N, …) → (N,).

    Values of x outside of 0 to 1, which no reconstruction can reach, count as 0 or 1.

    >>> reconstruction_cross_entropy(torch.ones(1, 1, 1, 2), torch.full((1, 1, 1, 2), 0.5))
    tensor([1.3863])
    """
    return F.binary_cross_entropy(reconstruction, x.clamp(0, 1), reduction="none").flatten(1).sum(1)


def wae_loss(reconstruction_error: Tensor, divergence: Tensor, weight: float) -> Tensor:
    """Eq. 6: ‖G(Q(x)) − x‖² + λ·D(Q(x), P(e)), (N,); `divergence` from `gan_penalty`, (N,), or `mmd_penalty`, a scalar.

    >>> wae_loss(torch.tensor([5.0, 0.0]), torch.tensor(0.5), weight=10.0)
    tensor([10.,  5.])
    """
    return reconstruction_error + weight * divergence


def mmd_penalty(codes: Tensor, prior_samples: Tensor) -> Tensor:
    """Eq. 6, D as maximum mean discrepancy: the unbiased estimate of MMD²(Q(x), P(e)), from (N, d) and (M, d).

    The kernel is Σ_s C_s / (C_s + ‖a − b‖²), the inverse multiquadratic of the WAE paper, with C_s = 2·d·s
    for a standard normal prior in d dimensions. Unbiased means that no sample is compared with itself (N, M ≥ 2); the
    estimate of equal distributions is 0 on average and may be below 0.

    >>> mmd_penalty(torch.zeros(2, 1), torch.zeros(2, 1))
    tensor(0.)
    """
    n, m = len(codes), len(prior_samples)
    within_codes = _inverse_multiquadratic(codes, codes)
    within_prior = _inverse_multiquadratic(prior_samples, prior_samples)
    between = _inverse_multiquadratic(codes, prior_samples)
    return (
        (within_codes.sum() - within_codes.diagonal().sum()) / (n * (n - 1))
        + (within_prior.sum() - within_prior.diagonal().sum()) / (m * (m - 1))
        - 2 * between.mean()
    )


def log_density(prior_samples: Tensor) -> Tensor:
    """log p(z) of draws from the prior N(0, I), (N, d) → (N,).

    >>> log_density(torch.tensor([[0.0, 0.0], [1.0, 2.0]]))
    tensor([-1.8379, -4.3379])
    """
    dimensions = prior_samples.shape[1]
    return -(dimensions * math.log(2 * math.pi) + _squared_norm(prior_samples)) / 2


def gan_penalty(logits_codes: Tensor) -> Tensor:
    """Eq. 6, D as a GAN, the encoder's side: −log σ(logit), small where codes pass as draws from the prior, (N,).

    This is the non-saturating form: it keeps its gradient when the discriminator is sure.

    >>> gan_penalty(torch.tensor([[0.0]]))
    tensor([0.6931])
    """
    return F.softplus(-logits_codes.flatten())


def discriminator_loss(logits_prior: Tensor, logits_codes: Tensor) -> Tensor:
    """Eq. 6, D as a GAN, the discriminator's side: −log σ(logit of a prior's draw) − log(1 − σ(logit of Q(x))), (N,).

    >>> discriminator_loss(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([1.3863])
    """
    return F.softplus(-logits_prior.flatten()) + F.softplus(logits_codes.flatten())


def perturbed(h: Tensor, e: Tensor) -> Tensor:
    """Eq. 10: h⁺ = h + Softplus(e), features (N, …) moved by e ~ N(μ, σ), drawn in their shape.

    `networks.hooks.added` computes this and the mixing of features together, in one operation.

    >>> perturbed(torch.tensor([1.0]), torch.tensor([0.0]))
    tensor([1.6931])
    """
    return h + F.softplus(e)


def mixup(clean: Tensor, augmented: Tensor, mix: Tensor) -> Tensor:
    """Eq. 11: λ·h + (1 − λ)·h⁺, for features and for labels alike, (N, …), with λ of each sample, (N,).

    >>> mixup(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]]), torch.tensor([0.25, 1.0]))
    tensor([[0.7500],
            [0.0000]])
    """
    share = mix.view(-1, *[1] * (clean.dim() - 1))
    return share * clean + (1 - share) * augmented


def smoothed_labels(labels: Tensor, classes: int, chance: Tensor, rho: float, void: int | None = None) -> Tensor:
    """ỹ of Eq. 11 in expectation: with chance τ the true class has ρ and the others share the rest, else it has all.

    The expectation over the lottery is linear in τ, (N,), so that a gradient reaches whatever predicts τ. Labels (N,)
    or (N, H, W) → (N, classes) or (N, classes, H, W). Pixels labelled `void` get no mass at all; if it is one of the
    classes' numbers, no pixel gives it any.

    >>> smoothed_labels(torch.tensor([1]), 3, torch.tensor([0.5]), rho=0.8)
    tensor([[0.0500, 0.9000, 0.0500]])
    """
    hard = hard_labels(labels, classes, void)
    takes_part = torch.ones(classes, device=labels.device, dtype=hard.dtype)
    if void is not None and 0 <= void < classes:
        takes_part[void] = 0
    others = ((1 - rho) / (takes_part.sum() - 1) * takes_part).view(1, -1, *[1] * (hard.dim() - 2))
    smooth = hard * (rho - others) + others * hard.sum(1, keepdim=True)
    return mixup(smooth, hard, chance)


def hard_labels(labels: Tensor, classes: int, void: int | None = None) -> Tensor:
    """y as a distribution: all mass on the true class, none anywhere where the label is void.

    >>> hard_labels(torch.tensor([1]), 3)
    tensor([[0., 1., 0.]])
    """
    counted = torch.ones_like(labels, dtype=torch.bool) if void is None else labels != void
    one_hot = F.one_hot(labels.where(counted, 0), classes).movedim(-1, 1)
    return one_hot.to(torch.get_default_dtype()) * counted.unsqueeze(1)


def _squared_norm(difference: Tensor) -> Tensor:
    """‖·‖² of each sample: (N, …) → (N,)."""
    return difference.square().flatten(1).sum(1)


def _inverse_multiquadratic(a: Tensor, b: Tensor) -> Tensor:
    """The kernel of `mmd_penalty` between all pairs: (N, d), (M, d) → (N, M)."""
    # Not torch.cdist: its square root has no gradient at distance 0, where a sample meets itself.
    squared = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(2)
    base = 2.0 * a.shape[1]
    return torch.stack([scale * base / (scale * base + squared) for scale in MMD_SCALES]).sum(0)
