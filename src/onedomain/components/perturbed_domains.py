"""The domains of Uncertain SDG's meta-test: a batch under the noise of φ (Eq. 10), mixed with itself (Eq. 11)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from onedomain.components.equations import hard_labels, mixup, semantic_distance, smoothed_labels, task_loss
from onedomain.components.meta import Model
from onedomain.components.perturb import Noise
from onedomain.networks import NamedNetwork
from onedomain.networks.hooks import added, watched
from onedomain.networks.precision import full, passing


@dataclass(frozen=True)
class Made:
    """What φ makes of a batch: K domains, of one or both kinds (perturbed, mixed)."""

    offsets: list[Tensor]  # Softplus(e) of every layer, (K, N, …)
    share: Tensor  # 1 − λ, (kinds, K, N)
    labels: Tensor  # (kinds, K, N, classes, …)
    weights: Tensor  # of the kinds' losses
    of: int  # how many samples there are, of which N may be one process's share

    @property
    def parts(self) -> dict[str, Tensor]:
        """All that depends on φ."""
        # A slash stands in no parameter's name: these names lie beside those of the network's.
        named = {f"φ/offset/{place}": offset for place, offset in enumerate(self.offsets)}
        every = {**named, "φ/share": self.share, "φ/labels": self.labels}
        return {name: tensor for name, tensor in every.items() if tensor.requires_grad}

    def cut(self) -> Made:
        """The same values; what depends on φ as leaves whose gradients can be asked for."""

        def leaf(tensor: Tensor) -> Tensor:
            return tensor.detach().requires_grad_(tensor.requires_grad)

        return Made(
            [leaf(offset) for offset in self.offsets], leaf(self.share), leaf(self.labels), self.weights, self.of
        )

    def weighed(self, values: Tensor) -> Tensor:
        """(kinds, K, N) → (K,): the mean over the samples of each domain, the kinds by their weights."""
        return (self.weights[:, None] * values.mean(2)).sum(0)

    @property
    def smoothness(self) -> Tensor:
        """Mean of what the labels of the last kind give to other classes than the largest; void pixels have none."""
        labels = self.labels[-1].detach()
        return (labels.sum(2) - labels.amax(2)).sum() / labels.sum().clamp(min=1)


@dataclass(frozen=True)
class Labels:
    """The labels of a batch, (N, …), and the number of classes; pixels labelled `void` never count."""

    values: Tensor
    classes: int
    void: int | None = None

    @cached_property
    def hard(self) -> Tensor:
        """All of a sample's mass on its class, (N, classes, …)."""
        return hard_labels(self.values, self.classes, self.void)


def make_domains(noise: Noise, labels: Labels, count: int, weights: tuple[float, float], rho: float) -> Made:
    """Eq. 10 and 11: `count` domains of perturbed samples with their own labels, and of mixed ones with mixed labels.

    `weights` are those of the losses on both kinds; one that weighs nothing is not made. Both share their draws of e.
    """
    hard = labels.hard
    kinds: list[tuple[float, Tensor, Tensor]] = []  # weight, 1 − λ, labels
    of_perturbed, of_mixed = weights
    if of_perturbed > 0:
        share = torch.ones(count, len(hard), device=hard.device)
        kinds.append((of_perturbed, share, hard.expand(count, *hard.shape)))
    if of_mixed > 0:
        mix = noise.draw_mix(count)
        kinds.append((of_mixed, 1 - mix, mixed_labels(noise, labels, mix, rho)))
    weighed, shares, labelled = zip(*kinds, strict=True)
    weight = torch.tensor(weighed, device=hard.device)
    of = len(hard) if noise.of is None else noise.of
    return Made(noise.draw(count), torch.stack(shares), torch.stack(labelled), weight, of)


def mixed_labels(noise: Noise, labels: Labels, mix: Tensor, rho: float) -> Tensor:
    """y⁺ of Eq. 11 for each draw of λ: y mixed with what is smoothed by chance τ, (draws, N, classes, …)."""
    smooth = smoothed_labels(labels.values, labels.classes, noise.tau, rho, labels.void)
    return torch.stack([mixup(labels.hard, smooth, each) for each in mix])


def domain_losses(
    model: Model, network: NamedNetwork, images: Tensor, made: Made, z: Tensor, *, expand: bool
) -> tuple[Tensor, Tensor]:
    """The loss on every sample of K domains, and how far each carries z (L_const, Eq. 5, as a mean over features).

    Both (kinds, K, N). All are one batch, unless the network has BatchNorm in train mode: then each domain is one.
    `expand` says that the network takes the images once, and the noise makes the copies.
    """
    kinds, k, size = made.share.shape

    def passed(offsets: list[Tensor], share: Tensor) -> tuple[Tensor, Tensor]:
        copies = 1 if expand else share.shape[0] * share.shape[1]
        with added(network, offsets, share), watched(network) as seen, passing(network.half, images.device):
            logits = model(images.repeat(copies, 1, 1, 1) if copies > 1 else images)
        return full(logits), seen.z

    if model.mixes_samples:
        parts = [
            passed([offset[each : each + 1] for offset in made.offsets], made.share[kind, each].view(1, 1, size))
            for kind in range(kinds)
            for each in range(k)
        ]
        logits, z_plus = (torch.cat(column) for column in zip(*parts, strict=True))
    else:
        logits, z_plus = passed(made.offsets, made.share)
    losses = task_loss(logits, made.labels.flatten(0, 2))
    distances = semantic_distance(z.detach().repeat(kinds * k, *[1] * (z.dim() - 1)), z_plus) / (z[0].numel() / 2)
    return losses.view(kinds, k, size), distances.view(kinds, k, size)
