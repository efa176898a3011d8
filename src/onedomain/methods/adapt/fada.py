"""FADA: a discriminator tells four groups of pairs apart, and the encoder confuses it about the domains."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from onedomain.components.descent import adam, descend
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods.adapt.base import TwoDomains, TwoDomainSettings
from onedomain.methods.base import Setup

# Pairs of two source images, or of a source and a target image; of one class, or of two.
SOURCE_SAME, ACROSS_SAME, SOURCE_OTHER, ACROSS_OTHER = range(4)  # the paper's groups 1 to 4


class FADASettings(TwoDomainSettings):
    pretrain_steps: int = Field(1_000, ge=0, description="first steps: encoder and classifier on the source alone")
    discriminator_steps: int = Field(100, ge=0, description="steps after them: the discriminator alone")
    gamma: float = Field(0.2, ge=0, description="γ, weight of the confusion (their paper does not print it)")
    hidden: int = Field(128, ge=1, description="width of the discriminator's first layer; the second has half of it")
    discriminator_rate: float = Field(1e-3, gt=0, description="Adam's rate of the discriminator")

    @model_validator(mode="after")
    def _some_steps_adapt(self) -> FADASettings:
        if self.pretrain_steps + self.discriminator_steps >= self.steps:
            raise ValueError("more steps than pretrain_steps and discriminator_steps together")
        return self


class FADA(TwoDomains):
    """Few-shot adversarial domain adaptation.

    The domain-class discriminator learns which of four groups a pair of embeddings is of. Then encoder and classifier
    learn both domains while they make pairs across the domains (groups 2 and 4) pass as pairs of the source (1 and 3),
    in turn with the discriminator, which goes on learning.
    """

    Settings = FADASettings
    settings: FADASettings
    state = (*TwoDomains.state, "discriminator", "discriminator_optimiser")
    summary = "From scratch: pairs of images that hide their domain."
    citation = "Motiian et al., Few-Shot Adversarial Domain Adaptation, NeurIPS 2017"

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        self.network.module.eval()  # a look that leaves BatchNorm's statistics alone
        with torch.no_grad():
            width = self.network.embed(setup.images)[1].flatten(1).shape[1]
        self.discriminator = discriminator(width, self.settings.hidden).to(self.device)
        self.discriminator_optimiser = adam(self.discriminator, self.settings.discriminator_rate)

    def step(self, batch: Batch, step: int) -> dict[str, Tensor]:
        settings = self.settings
        if step < settings.pretrain_steps:
            loss = task_loss(self.network(batch.images), batch.labels).mean()
            return descend(self.optimiser, loss, self.scaler, task=loss)
        target = self.beside(batch)
        pairs = balanced(pair_groups(batch.labels, target.labels))
        if step < settings.pretrain_steps + settings.discriminator_steps:
            with torch.no_grad():
                z = self.embed_both(batch, target)[1]
            loss = self.train_discriminator(z, pairs)
            return {"loss": loss, "discriminator": loss}
        losses, z = self.train_encoder(batch, target, pairs)
        # On the embeddings that the encoder's step was taken from: one pass of the network per step, not two.
        return {**losses, "discriminator": self.train_discriminator(z, pairs)}

    def train_discriminator(self, z: Tensor, pairs: Sequence[Tensor]) -> Tensor:
        """Cross-entropy over the four groups, the encoder fixed."""
        logits = self.discriminator(torch.cat([paired(z.detach(), group) for group in pairs]))
        groups = torch.cat([torch.full((group.shape[1],), place) for place, group in enumerate(pairs)])
        loss = F.cross_entropy(logits, groups.to(logits.device)) if len(groups) else logits.sum()
        return descend(self.discriminator_optimiser, loss, self.scaler)["loss"]

    def train_encoder(self, batch: Batch, target: Batch, pairs: Sequence[Tensor]) -> tuple[dict[str, Tensor], Tensor]:
        """Cross-entropy on both domains, plus γ times the confusion of groups 2 with 1 and 4 with 3."""
        count = len(batch.labels)
        logits, z = self.embed_both(batch, target)
        task = task_loss(logits[:count], batch.labels).mean() + task_loss(logits[count:], target.labels).mean()
        confusion = self.confusion(z, pairs)
        loss = task + self.settings.gamma * confusion
        return descend(self.optimiser, loss, self.scaler, task=task, confusion=confusion), z.detach()

    def confusion(self, z: Tensor, pairs: Sequence[Tensor]) -> Tensor:
        """−E[log D₁(G₂)] − E[log D₃(G₄)]: small where pairs across the domains pass as pairs of the source."""
        loss = z.new_zeros(())
        for group, taken_for in ((ACROSS_SAME, SOURCE_SAME), (ACROSS_OTHER, SOURCE_OTHER)):
            logits = self.discriminator(paired(z, pairs[group]))
            if len(logits):
                loss = loss + F.cross_entropy(logits, torch.full((len(logits),), taken_for, device=z.device))
        return loss


def discriminator(width: int, hidden: int) -> nn.Sequential:
    """From two embeddings of this width, one after the other, to the logits of the four groups."""
    second = max(1, hidden // 2)
    return nn.Sequential(
        nn.Linear(2 * width, hidden), nn.ReLU(), nn.Linear(hidden, second), nn.ReLU(), nn.Linear(second, 4)
    )


def paired(z: Tensor, pairs: Tensor) -> Tensor:
    """(N, D) and (2, P) → (P, 2·D): the embeddings of each pair, side by side."""
    return z[pairs].permute(1, 0, 2).flatten(1)


def pair_groups(source_labels: Tensor, target_labels: Tensor) -> list[Tensor]:
    """All pairs of a step by their group, each as (2, P): places in the source batch followed by the target batch.

    1: two source images of one class; 2: a source and a target image of one class; 3 and 4: the same, of two classes.
    No image is paired with itself, no pair is counted twice.

    >>> [group.tolist() for group in pair_groups(torch.tensor([0, 0, 1]), torch.tensor([1]))]
    [[[0], [1]], [[2], [3]], [[0, 1], [2, 2]], [[0, 1], [3, 3]]]
    """
    labels = torch.cat([source_labels, target_labels])
    n, m = len(source_labels), len(target_labels)
    within = torch.triu_indices(n, n, 1, device=labels.device)
    across = torch.cartesian_prod(torch.arange(n), torch.arange(n, n + m)).T.to(labels.device)
    groups = []
    for same in (True, False):
        for pairs in (within, across):
            groups.append(pairs[:, (labels[pairs[0]] == labels[pairs[1]]) == same])
    return groups


def balanced(groups: Sequence[Tensor]) -> list[Tensor]:
    """As many pairs of each group, drawn at random: as many as the smallest group has."""
    size = min(group.shape[1] for group in groups)
    return [group[:, torch.randperm(group.shape[1])[:size].to(group.device)] for group in groups]
