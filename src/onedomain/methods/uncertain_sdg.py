"""Uncertain SDG: learned feature perturbation and mixup as the domains of the meta-test (Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from onedomain.components.compact import as_bytes, as_vectors
from onedomain.components.descent import descend, take_step, together
from onedomain.components.equations import task_loss
from onedomain.components.meta import MetaGradient, Model, batch_losses, gradients, in_layout_of, meta_gradient
from onedomain.components.perturb import Noise, Perturbation, by_fan_in, effect_of
from onedomain.components.perturbed_domains import Labels, Made, domain_losses, make_domains, mixed_labels
from onedomain.components.predictive import Predictive
from onedomain.data.domain import Batch
from onedomain.data.memory import images_at_once
from onedomain.methods.base import Method, Setup
from onedomain.networks.distributed import average, gathered, own
from onedomain.networks.hooks import added, can_expand, require_reached_embedding, watched
from onedomain.networks.named import IMAGE
from onedomain.networks.precision import passing
from onedomain.settings import Settings, search

LARGEST_PASS = 500  # images times draws at once, fewer if they are large
SNAPSHOTS_AT = (0.0, 0.05, 0.2, 0.4, 0.7, 1.0)  # of the steps after the warm-up
PICTURED = 8  # images of a snapshot that are kept themselves, with a map of |e|
LABEL_DRAWS = 10  # mixed labels of each image of a snapshot


class UncertainSDGSettings(Settings):
    """α weighs a mean over features, as in SDG."""

    steps: int = Field(1_500, ge=1, le=10**9, description="training steps (released code: 6,000)")
    learning_rate: float = Field(
        1e-3,
        gt=0,
        description="rate of the optimiser at the start (released code: 1e-4)",
        json_schema_extra=search(around=10, log=True),
    )
    schedule: Literal["constant", "cosine"] = Field(
        "cosine",
        description="of the rate over the run: as it is (released code), or falling to 0 along half a cosine",
        json_schema_extra=search(among=("constant", "cosine")),
    )
    domains: int = Field(
        1,
        ge=1,
        description="K, Monte-Carlo draws of a perturbed domain per step (released code: 10)",
        json_schema_extra=search(1, 3),
    )
    alpha: float = Field(
        0.1,
        ge=0,
        description="α, weight of L_const while φ climbs (released code: 1)",
        json_schema_extra=search(0.01, 10, log=True),
    )
    ceiling: float = Field(
        0.4,
        ge=0,
        description="highest loss that φ brings a sample to, as a multiple of chance; 0: no ceiling (paper)",
        json_schema_extra=search(0.2, 0.8),
    )
    perturbed_weight: float = Field(
        1.0,
        ge=0,
        description="weight of the loss on perturbed features with hard labels (paper: none; released code: 1)",
    )
    mixup_weight: float = Field(
        0.01,
        ge=0,
        description="weight of the loss on mixed features and labels, Eq. 11 (released code: 0.01)",
        json_schema_extra=search(0.001, 1, log=True),
    )
    image: bool = Field(
        True, description="perturb the image as well, by smooth noise, as if it were a layer (paper: layers alone)"
    )
    adversary: Literal["throughout", "burst", "alternate", "none"] = Field(
        "throughout",
        description="when φ climbs L_task − α·L_const; in the other steps it is trained along with θ; none: ablation",
    )
    adversary_rate: float = Field(
        0.001,
        gt=0,
        description="Adam's rate of φ's ascent for the layers, by fan-in for weights (released: plain gradient, 1)",
        json_schema_extra=search(1e-4, 0.1, log=True),
    )
    image_rate: float = Field(
        0.1, gt=0, description="the same for the noise of the image", json_schema_extra=search(0.01, 1, log=True)
    )
    burst_steps: int = Field(20, ge=1, description="steps of a burst, after the warm-up (released code: 20)")
    burst_updates: int = Field(30, ge=1, description="ascent updates in each step of a burst (released code: 30)")
    uncertainty: bool = Field(True, description="learned (μ, σ) and mixing; false is the ablation: e ~ N(0, I)")
    rho: float = Field(0.9, gt=0, lt=1, description="ρ, what a smoothed label leaves the true class (released: 0.9)")
    warm_up: int = Field(100, ge=0, description="steps before the first perturbation (released code: 100)")
    second_order: bool = Field(True, description="exact gradient through the inner step; false leaves out curvature")
    inner_rate: float = Field(
        1e-4, gt=0, description="η of Eq. 8 (released code: 1e-4)", json_schema_extra=search(1e-4, 0.1, log=True)
    )
    inner_steps: int = Field(1, ge=1, description="gradient steps of the meta-train (paper: one or more)")
    prediction_draws: int = Field(
        5, ge=0, le=1000, description="Monte-Carlo draws that mutual information comes from; the prediction needs none"
    )

    @model_validator(mode="after")
    def _some_weight(self) -> UncertainSDGSettings:
        if self.perturbed_weight == 0 and self.mixup_weight == 0:
            raise ValueError("perturbed_weight and mixup_weight not both 0")
        return self


_COMMON = {
    "image": False,
    "ceiling": 0.0,
    "alpha": 1.0,
    "adversary_rate": 0.1,
    "uncertainty": True,
    "rho": 0.9,
    "second_order": True,
    "inner_steps": 1,
    "weight_decay": 0.0,
    "flips_and_crops": False,
}  # to the paper's form and the released code's


class UncertainSDG(Method):
    """Single domain generalization by learned, uncertainty-guided feature perturbation and mixup.

    φp gives the noise of named layers from their inputs, φm how noise and labels are mixed. Every step trains on
    the source and is tested, one gradient step ahead, on K perturbed domains; φ makes them harder.
    """

    Settings = UncertainSDGSettings
    settings: UncertainSDGSettings
    summary = "Learned feature noise and mixup; tells how unsure it is."
    needs_embedding = True
    citation = "Peng, Qiao, Zhao, Out-of-Domain Generalization from a Single Source; Qiao, Peng, CVPR 2021"
    cost = 8.1
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            **_COMMON,
            "domains": 3,
            "perturbed_weight": 0.0,
            "mixup_weight": 1.0,
            "adversary": "throughout",
        },
        "released": {
            **_COMMON,
            "domains": 10,  # whose losses are averaged there, and summed here: a tenth of the weights 1 and 0.01
            "perturbed_weight": 0.1,
            "mixup_weight": 0.001,
            "adversary": "burst",
            "burst_steps": 20,
            "burst_updates": 30,
        },
    }
    state = ("network", "phi", "optimiser", "phi_optimiser", "climber")

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        images = setup.images
        named = self.network.perturb
        self.noisy = replace(self.network, perturb=(IMAGE, *named) if self.settings.image else named)
        self.auxiliary = self.phi = Perturbation(self.noisy, images)
        self.expand = can_expand(replace(self.noisy, half=None), images)  # it compares in full precision
        require_reached_embedding(self.network, images)  # by the layers: the image always reaches it
        self.optimiser = self.optimiser_for(self.network.module)
        self.phi_optimiser = self.optimiser_for(self.phi)
        # Plain ascent stands still as soon as θ fits, when the gradient is small; Adam's steps keep their size.
        groups = by_fan_in(self.phi, of_image=self.settings.image_rate, of_layers=self.settings.adversary_rate)
        self.climber = together(torch.optim.Adam(groups, fused=True, maximize=True))

    @property
    def begins(self) -> int:
        return self.settings.warm_up

    def step(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Algorithm 2: meta-train on S, meta-test on K perturbed and mixed domains, meta-update of θ and φ."""
        module = self.network.module
        if step < self.settings.warm_up:
            loss = self._source_loss(Model(module, {}, {}), batch).sum()
            return descend(self.optimiser, loss, self.scaler, source=loss)

        ended = self.settings.warm_up + self.settings.burst_steps
        if self.settings.adversary == "burst" and self.settings.uncertainty and step < ended:
            self._climb_alone(batch)
        climbs = self._climbs(step)
        domains = _Domains(self, batch, climbs)
        meta = meta_gradient(
            module,
            domains.meta_train,
            domains.meta_test,
            rate=self.settings.inner_rate,
            inner_steps=self.settings.inner_steps,
            second_order=self.settings.second_order,
            also={} if climbs else domains.leaves,
            scale=self.scaler.get_scale(),
        )
        meta.assign(module)
        take_step(self.optimiser, self.scaler)
        if self.settings.uncertainty:
            domains.assign(meta)
            take_step(self.climber if climbs else self.phi_optimiser, self.scaler)
        self.scaler.update()
        losses = torch.cat([meta.source_loss, meta.domain_losses])
        logged = {"loss": losses.sum(), "source": losses[0], "augmented": losses[1:].mean()}
        return {**logged, **domains.strength()}

    @torch.no_grad()
    def predictive(self, images: Tensor, draws: int | None = None) -> Predictive:
        """One plain pass gives the prediction and (μ, σ); the draws share what lies before the noise, in one batch.

        What is said of an image does not depend on the others: all have the same standard normal draws.
        """
        count = self.settings.prediction_draws if draws is None else draws
        self.network.module.eval()
        height, width = images.shape[2:]
        size = images_at_once(height, width, LARGEST_PASS) // max(1, count)
        return Predictive.joined([self._predictive(part, count) for part in torch.split(images, max(1, size))])

    def _predictive(self, images: Tensor, count: int) -> Predictive:
        with watched(self.noisy) as seen:
            plain = self.network(images).double().softmax(1)
        # Without learned uncertainty (μ, σ) are the same for all images, and say nothing of them.
        statistics = self.phi.statistics(seen.inputs) if self.settings.uncertainty else None
        if count == 0:
            return Predictive(plain[None], statistics, seen.z)
        noise = self._noise(seen.inputs)
        share = torch.ones(1, count, len(images), device=images.device)
        given = images if self.expand else images.repeat(count, 1, 1, 1)
        with added(self.noisy, noise.draw_alike(count, self.seed), share):
            sampled = self.network(given).double().softmax(1)
        return Predictive(sampled.view(count, len(images), *sampled.shape[1:]), statistics, seen.z, plain)

    @property
    def snapshot_steps(self) -> tuple[int, ...]:
        first, last = min(self.settings.warm_up, self.settings.steps), self.settings.steps
        return tuple(sorted({round(first + share * (last - first)) for share in SNAPSHOTS_AT}))

    @torch.no_grad()
    def snapshot(self, batch: Batch) -> dict[str, np.ndarray]:
        """What Eq. 10 does to images, and y⁺ by Eq. 11: (draws·N, classes); for segmentation the mean over the
        pixels that count.
        """
        self.network.module.eval()
        with watched(self.noisy) as seen:
            self.network(batch.images)
        noise = self._noise(seen.inputs)
        taken = {
            "labels": batch.labels.cpu().numpy() if not self.source.dense else np.zeros(0, np.int64),
            "images": as_bytes(batch.images[:PICTURED], self.source.value_range),
            "embedding": as_vectors(seen.z),
            **effect_of(noise, self.noisy, batch.images, PICTURED),
        }
        if self.settings.mixup_weight > 0:
            drawn = noise.draw_mix(LABEL_DRAWS)
            mixed = mixed_labels(noise, self._labels(batch), drawn, self.settings.rho).flatten(0, 1)
            if mixed.dim() > 2:  # void pixels have no mass
                mixed = mixed.flatten(2).sum(2)
                mixed = mixed / mixed.sum(1, keepdim=True).clamp(min=1)
            taken["mixed_labels"] = mixed.float().cpu().numpy()
        return taken

    def _climbs(self, step: int) -> bool:
        """Whether φ climbs in this step's meta-update, or comes down along with θ."""
        if self.settings.adversary == "alternate":
            return (step - self.settings.warm_up) % 2 == 0
        return self.settings.adversary == "throughout"

    def _source_loss(self, model: Model, batch: Batch) -> Tensor:
        return batch_losses(model, [batch], partial(task_loss, void=self.source.void), self.network.half)

    def _noise(self, inputs: list[Tensor], of: int | None = None) -> Noise:
        """What φ says; `of` how many samples, where these are a process's share of a batch."""
        noise: Noise = replace(self.phi(inputs), of=of)
        if self.settings.uncertainty:
            return noise
        ones = torch.ones_like(noise.tau)
        mu = [torch.zeros_like(each) for each in noise.mu]
        return Noise(mu, [torch.ones_like(each) for each in mu], ones, ones, 0.5 * ones, noise.image, of)

    def _climb_alone(self, batch: Batch) -> None:
        """A burst: φ climbs L_task − α·L_const on this batch many times, θ and its statistics stay as they are."""
        module = self.network.module
        spare = {name: buffer.clone() for name, buffer in module.named_buffers()}
        model = Model(module, {name: p.detach() for name, p in module.named_parameters()}, spare)
        share = Batch(*map(own, batch))
        with torch.no_grad(), watched(self.noisy) as seen, passing(self.network.half, self.device):
            model(share.images)
        for _ in range(self.settings.burst_updates):
            made = self._make(share, self._noise(seen.inputs, of=len(batch.labels)))
            losses, distances = self._meta_test(model, share, made, seen.z)
            self.climber.zero_grad()
            self.scaler.scale(self._climbed(made, losses, distances)).backward()  # type: ignore[no-untyped-call]
            take_step(self.climber, self.scaler)
            self.scaler.update()

    def _make(self, batch: Batch, noise: Noise) -> Made:
        """Eq. 10 and 11: K domains of this share of a batch."""
        settings = self.settings
        weights = settings.perturbed_weight, settings.mixup_weight
        return make_domains(noise, self._labels(batch), settings.domains, weights, settings.rho)

    def _labels(self, batch: Batch) -> Labels:
        return Labels(batch.labels, len(self.source.classes), self.source.void)

    def _meta_test(self, model: Model, batch: Batch, made: Made, z: Tensor) -> tuple[Tensor, Tensor]:
        """Losses and distances of all samples of a batch, from what was made of each process's share."""
        both = torch.stack(domain_losses(model, self.noisy, batch.images, made, z, expand=self.expand), -1)
        losses, distances = gathered(both.movedim(2, 0), made.of).movedim(0, 2).unbind(-1)
        return losses, distances

    def _climbed(self, made: Made, losses: Tensor, distances: Tensor) -> Tensor:
        """What φ climbs: L_task − α·L_const. A sample whose loss is above the ceiling is made easier instead."""
        settings = self.settings
        if settings.ceiling > 0:
            ceiling = settings.ceiling * math.log(len(self.source.classes))
            losses = torch.where(losses < ceiling, losses, 2 * ceiling - losses)
        return (made.weighed(losses) - settings.alpha * made.weighed(distances)).sum()


class _Domains:
    """The K domains of one step, made by φ in the meta-train pass and used in the meta-test.

    The meta-test sees what φ made as leaves: everything on the way back to φ is passed once, for the gradients of task
    loss and constraint together, and only if they are asked for.
    """

    def __init__(self, method: UncertainSDG, batch: Batch, climbs: bool) -> None:
        self.method, self.batch, self.climbs = method, batch, climbs
        self.share = Batch(*map(own, batch))  # φ's work, too, is split over the processes
        self.drawn = False
        self.leaves: dict[str, Tensor] = {}  # what φ made, as `meta_gradient` is to see it
        self.up: tuple[Tensor, ...] = ()  # the gradient of what φ climbs by what φ made

    def meta_train(self, model: Model) -> Tensor:
        """L_task on S; of several inner steps the first one, at θ, gives (μ, σ) = φp(S, θ)."""
        with watched(self.method.noisy) as seen:
            losses = self.method._source_loss(model, self.batch)
        if not self.drawn:
            self.drawn = True
            self.z = seen.z.detach()
            self.noise = self.method._noise(seen.inputs, of=len(self.batch.labels))
            self.made = self.method._make(self.share, self.noise)
            self.cut = self.made.cut()
            self.leaves.update(self.cut.parts)
        return losses

    def meta_test(self, model: Model) -> Tensor:
        """L_task of θ̂ on each domain, and, while φ climbs, where to."""
        losses, distances = self.method._meta_test(model, self.share, self.cut, self.z)
        if self.climbs and self.leaves:
            climbed = self.method._climbed(self.cut, losses, distances)
            self.up = gradients([self.method.scaler.scale(climbed)], self.leaves.values(), retain_graph=True)
        return self.cut.weighed(losses)

    def assign(self, meta: MetaGradient) -> None:
        """Make the gradient of what φ climbs, or of L_task, when it comes down along with θ, the `.grad` of φ."""
        towards = self.up or [meta.gradients[name] for name in self.made.parts]
        phi = list(self.method.phi.parameters())
        for parameter, gradient in zip(phi, gradients(self.made.parts.values(), phi, towards), strict=True):
            parameter.grad = in_layout_of(parameter, gradient)

    def strength(self) -> dict[str, Tensor]:
        """How hard the domains are: logged, since they are to grow harder."""
        strength = {
            "perturbation": torch.stack([offset.mean() for offset in self.cut.offsets]).mean().detach(),
            "sigma": torch.stack([sigma.detach().mean() for sigma in self.noise.sigma]).mean(),
            "smoothness": self.cut.smoothness,
            "tau": self.noise.tau.detach().mean(),
            "mix": (self.noise.a / (self.noise.a + self.noise.b)).detach().mean(),
        }
        average(strength.values())
        return strength
