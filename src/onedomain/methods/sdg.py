"""SDG: adversarial domain augmentation, relaxed by an auto-encoder, in a meta-learning scheme (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator

from onedomain.components.ascent import ASCENT_COST, ascend, frozen, near_range
from onedomain.components.augmented_domains import Augmentation
from onedomain.components.descent import descend, take_step
from onedomain.components.equations import ada_objective, relaxation, semantic_distance, task_loss
from onedomain.components.meta import Model, batch_losses, meta_gradient
from onedomain.components.transport import wasserstein
from onedomain.components.wae import AUTO_ENCODERS, WAE_COST, AutoEncoder, WAESettings, WAETraining
from onedomain.data.domain import Batch, Domain
from onedomain.data.memory import images_at_once
from onedomain.methods.base import Method, Part, Setup
from onedomain.settings import Settings, search

TRANSPORT_SAMPLE = 500  # images of each side that the transport of a domain is measured on,
TRANSPORT_VALUES = 2**24  # or fewer, so that they have no more values than this


class SDGSettings(Settings):
    """α and β weigh means over features and over pixels: the scale on which the paper's values make sense."""

    domains: int = Field(
        3, ge=1, description="K, augmented domains made one after another (paper: 3)", json_schema_extra=search(1, 5)
    )
    alpha: float = Field(
        1.0,
        ge=0,
        description="α, weight of L_const; 0 is the ablation without it (paper: 1)",
        json_schema_extra=search(0.01, 10, log=True),
    )
    beta: float = Field(
        2000.0,
        ge=0,
        description="β, weight of L_relax; 0 is the ablation without it (paper: 2,000)",
        json_schema_extra=search(100, 20_000, log=True),
    )
    relax: Literal["input", "reconstruction"] = Field(
        "reconstruction",
        description="L_relax: input is Eq. 7, ‖x⁺−V(x⁺)‖²; reconstruction is ‖V(x)−V(x⁺)‖², as released",
        json_schema_extra=search(among=("input", "reconstruction")),
    )
    range_margin: float = Field(2.0, ge=0, description="how far x⁺ may leave the image range, in widths of that range")
    ascent_rate: float = Field(
        1 / 32,
        gt=0,
        description="γ of Eq. 4, per sample (released code: 1 on the mean of 32)",
        json_schema_extra=search(around=4, log=True),
    )
    ascent_steps: int = Field(25, ge=1, description="T_adv of Eq. 4 (released code: 25)")
    domain_size: int = Field(5_000, ge=1, description="images of an augmented domain, at most as many as there are")
    warm_up: int = Field(100, ge=0, description="steps before the first domain is made (released code: 99)")
    domain_every: int = Field(100, ge=1, description="steps between two domains (released code: 100)")
    meta: bool = Field(True, description="meta-learning; false is the ablation: the plain sum of the losses")
    second_order: bool = Field(True, description="exact gradient through the inner step; false leaves out curvature")
    inner_rate: float = Field(
        1e-4, gt=0, description="η of Eq. 8 (released code: 1e-4)", json_schema_extra=search(1e-4, 0.1, log=True)
    )
    inner_steps: int = Field(1, ge=1, description="gradient steps of the meta-train (paper: one or more)")
    domain_losses: Literal["sum", "mean"] = Field(
        "sum",
        description="losses of the domains added up, as in Eq. 9, or averaged (released code: one pooled batch)",
        json_schema_extra=search(among=("sum", "mean")),
    )
    augmented_batch: int = Field(33, ge=1, description="images per step, of all augmented domains together")
    auto_encoder: Literal["dense", "conv", "segmentation"] = Field(
        "dense", description="V: the paper's for Digits, for CIFAR-10, or for SYNTHIA"
    )
    wae_loss: Literal["squared", "cross-entropy"] = Field(
        "squared",
        description="first term of Eq. 6: ‖G(Q(x)) − x‖², or summed cross-entropy of pixels, as released",
        json_schema_extra=search(among=("squared", "cross-entropy")),
    )
    prior: Literal["gan", "mmd"] = Field("gan", description="D of Eq. 6, what draws V's codes to the prior")
    prior_weight: float = Field(
        10.0, ge=0, description="λ of Eq. 6 (WAE paper: 10)", json_schema_extra=search(0.1, 100, log=True)
    )
    prior_logits: bool = Field(
        False, description="add log p(z) of the prior's draws to the logits of V's discriminator, as released; gan only"
    )
    wae_rate: float = Field(1e-3, gt=0, description="Adam's rate for V (paper: 1e-3 for Digits)")
    retrain: Literal["afresh", "on", "never"] = Field(
        "afresh",
        description="V before a further domain: started afresh on the last one, trained on with it, or kept",
    )
    wae_epochs: int = Field(20, ge=1, description="epochs of V on the source and on each domain (paper: 20)")

    @model_validator(mode="after")
    def _has_logits(self) -> SDGSettings:
        if self.prior_logits and self.prior != "gan":
            raise ValueError("prior_logits with prior gan alone")
        return self


_COMMON = {
    "domains": 3,
    "alpha": 1.0,
    "beta": 2000.0,
    "ascent_steps": 25,
    "meta": True,
    "second_order": True,
    "inner_steps": 1,
    "prior": "gan",
    "retrain": "afresh",
    "weight_decay": 0.0,
    "flips_and_crops": False,
}  # to the paper's form and the released code's


class SDG(Method):
    """Single domain generalization by meta-learned adversarial domain augmentation.

    K fictitious domains are made one after another: images of the source and of earlier domains climb L_ADA (Eq. 3),
    away from what the auto-encoder V knows and yet near in the embedding space. Every step trains on the source and is
    tested, one gradient step ahead, on all domains made so far (Eq. 8 and 9).
    """

    Settings = SDGSettings
    settings: SDGSettings
    summary = "Adversarial domains, relaxed by a WAE, in meta-learning."
    needs_embedding = True
    citation = "Peng, Qiao, Zhao, Out-of-Domain Generalization from a Single Source; Qiao, Zhao, Peng, CVPR 2020"
    cost = 4.2
    state = ("network", "optimiser", "augmentation", "wae_before", "wae")
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            **_COMMON,
            "relax": "input",
            "range_margin": 0.0,  # without bounds Eq. 7 diverges
            "domain_losses": "sum",
            "wae_loss": "squared",
            "prior_weight": 10.0,
            "prior_logits": False,
        },
        "released": {
            **_COMMON,
            "relax": "reconstruction",
            "range_margin": 1e3,  # it keeps no range
            "domain_losses": "mean",
            "wae_loss": "cross-entropy",
            "prior_weight": 3.125,
            "prior_logits": True,
        },
    }

    @property
    def training_parameters(self) -> int:
        if self.settings.beta == 0:
            return super().training_parameters
        with torch.device("meta"):
            v = self._new_auto_encoder()
        return super().training_parameters + sum(parameter.numel() for parameter in v.parameters())

    def preparation_cost(self, images: int) -> float:
        settings, size = self.settings, min(images, self.settings.domain_size)
        learned = settings.wae_epochs * (images + (settings.domains - 1) * size) if settings.beta > 0 else 0
        return (ASCENT_COST * settings.ascent_steps * settings.domains * size + WAE_COST * learned) / 32

    @property
    def step_cost(self) -> float:
        return self.cost if self.settings.meta and self.settings.second_order else 1.5

    @property
    def prepared(self) -> float:
        return len(self.augmentation.domains) / self.settings.domains

    @property
    def begins(self) -> int:
        return self.settings.warm_up

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        self.optimiser = self.optimiser_for(self.network.module)
        if setup.source is not None:
            self.low, self.high = setup.source.value_range
            folder = None if self.folder is None else self.folder / "augmented"
            self.augmentation = Augmentation(setup.source, self.settings.domain_size, (self.seed,), folder)
        self.wae: WAETraining | None = None  # V, in training or trained
        self.wae_before = 0  # the domain that V was trained for

    def prepare(self, step: int) -> Iterator[Part]:
        """Algorithm 1, lines 1 to 3: make S⁺ₖ, if it is due, with V re-trained on S⁺ₖ₋₁ (on S for the first)."""
        number = len(self.augmentation.domains) + 1
        if number > self.settings.domains or step < self.settings.warm_up + (number - 1) * self.settings.domain_every:
            return
        if self.settings.beta > 0:
            if self.wae is None or (self.wae_before < number and self.settings.retrain != "never"):
                self.wae, self.wae_before = self._new_wae(number), number
            while self.wae.steps_done < self.wae.steps_total:
                losses = self.wae.step()
                if self.wae.steps_done % 25 == 0:
                    what = f"V before domain {number}"
                    yield Part(what, self.wae.steps_done / self.wae.steps_total, {"error": losses["reconstruction"]})
        for done in self.augmentation.make(self._climb, self.device):
            yield Part(f"domain {number}", done)
        if self.settings.retrain == "afresh" or number == self.settings.domains:
            self.wae = None
        made = self.augmentation.domains[-1]
        yield Part(f"domain {number}", 1.0, record=(made.name, self._transport(made)))

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        """Algorithm 1, lines 4 to 8: meta-train on S, meta-test on every S⁺ made so far, meta-update."""
        module = self.network.module
        losses_of = partial(batch_losses, loss=partial(task_loss, void=self.source.void), half=self.network.half)
        drawn = self._draw()
        weight = 1.0 if self.settings.domain_losses == "sum" else 1.0 / max(1, len(drawn))
        if drawn and self.settings.meta:
            meta = meta_gradient(
                module,
                lambda model: losses_of(model, [batch]),
                lambda model: weight * losses_of(model, drawn),
                rate=self.settings.inner_rate,
                inner_steps=self.settings.inner_steps,
                second_order=self.settings.second_order,
                scale=self.scaler.get_scale(),
            )
            meta.assign(module)
            take_step(self.optimiser, self.scaler)
            self.scaler.update()
            losses = torch.cat([meta.source_loss, meta.domain_losses])
        else:
            losses = losses_of(Model(module, {}, {}), [batch])
            if drawn:
                spare = {name: buffer.clone() for name, buffer in module.named_buffers()}  # as in a meta step
                losses = torch.cat([losses, weight * losses_of(Model(module, {}, spare), drawn)])
            losses = descend(self.optimiser, losses.sum(), self.scaler, every=losses)["every"]
        logged = {"loss": losses.sum(), "source": losses[0]}
        return {**logged, "augmented": losses[1:].mean() / weight} if drawn else logged

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "wae": None})  # V learns the domains: they must be there before it
        if state["wae"] is not None:
            if not 1 <= self.wae_before <= len(self.augmentation.domains) + 1:
                raise ValueError(f"wae_before is {self.wae_before}")
            self.wae = self._new_wae(self.wae_before)
            self.wae.load_state_dict(state["wae"])

    def _climb(self, batch: Batch) -> torch.Tensor:
        """Eq. 4 on L_ADA (Eq. 3): z, V and V(x) are fixed; x⁺ keeps to the range of images, widened by the margin."""
        module = self.network.module.eval()
        v = None if self.wae is None else self.wae.auto_encoder.eval()
        with frozen(module, *([v] if v else [])):
            with torch.no_grad():
                _, z = self.network.embed(batch.images)
                known = None if v is None else v(self._to_unit(batch.images))

            def objective(x_plus: torch.Tensor) -> torch.Tensor:
                logits, z_plus = self.network.embed(x_plus)
                task = task_loss(logits, batch.labels, self.source.void)
                constraint = semantic_distance(z, z_plus) / (z[0].numel() / 2)
                if v is None or known is None:
                    return ada_objective(task, constraint, 0.0, self.settings.alpha, beta=0.0)
                unit = self._to_unit(x_plus)
                relaxed = relaxation(unit if self.settings.relax == "input" else known, v(unit)) / unit[0].numel()
                return ada_objective(task, constraint, relaxed, self.settings.alpha, self.settings.beta)

            return ascend(
                objective,
                batch.images,
                rate=self.settings.ascent_rate,
                steps=self.settings.ascent_steps,
                project=near_range(self.source.value_range, self.settings.range_margin),
            )

    def _draw(self) -> list[Batch]:
        """This step's images of every augmented domain, in equal numbers."""
        domains = self.augmentation.domains
        count = max(1, self.settings.augmented_batch // max(1, len(domains)))
        drawn = (domain.batch(torch.randint(len(domain), (count,)).numpy(), self.device) for domain in domains)
        return [self.varied(batch) for batch in drawn]

    def _new_wae(self, number: int) -> WAETraining:
        """The training of V before domain `number`: on the domain before it, the source for the first."""
        settings = WAESettings(
            prior=self.settings.prior,
            reconstruction=self.settings.wae_loss,
            prior_logits=self.settings.prior_logits,
            weight=self.settings.prior_weight,
            rate=self.settings.wae_rate,
            epochs=self.settings.wae_epochs,
            batch_size=max(2, self.settings.batch_size),  # BatchNorm takes no single image
        )
        learned = [self.source, *self.augmentation.domains][number - 1]
        before = self.wae.auto_encoder if self.wae is not None and self.settings.retrain == "on" else None
        auto_encoder = before or self._new_auto_encoder().to(self.device)
        return WAETraining(auto_encoder, learned, settings, self.seed, self._to_unit)

    def _new_auto_encoder(self) -> AutoEncoder:
        return AUTO_ENCODERS[self.settings.auto_encoder](self.image_shape)

    def _to_unit(self, images: torch.Tensor) -> torch.Tensor:
        """The image range seen as 0 to 1, which is what V can draw."""
        return images if (self.low, self.high) == (0.0, 1.0) else (images - self.low) / (self.high - self.low)

    @torch.no_grad()
    def _transport(self, augmented: Domain) -> dict[str, float]:
        """W_c in embedding space and W_d in input space between S and S⁺, on samples of both."""
        self.network.module.eval()
        rng = np.random.default_rng([self.seed, len(augmented)])
        height, width, channels = self.source.image_shape
        most = max(1, TRANSPORT_VALUES // (height * width * channels))
        size = min(TRANSPORT_SAMPLE, most, len(self.source), len(augmented))
        images = [
            domain.batch(rng.permutation(len(domain))[:size], self.device).images for domain in (self.source, augmented)
        ]
        at_once = images_at_once(height, width, size)
        embedded = [torch.cat([self.network.embed(part)[1] for part in torch.split(each, at_once)]) for each in images]
        return {"w_c": wasserstein(*embedded), "w_d": wasserstein(*images)}
