"""GUD: images that climb the loss, within reach in the embedding space, join the training set round by round."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from pydantic import Field, field_validator
from torch import nn

from onedomain.components.ascent import ASCENT_COST, ascend, frozen, near_range
from onedomain.components.augmented_domains import Augmentation
from onedomain.components.descent import descend
from onedomain.components.equations import ada_objective, semantic_distance, task_loss
from onedomain.components.predictive import Predictive
from onedomain.data.domain import Batch
from onedomain.methods.base import Method, Part, Setup
from onedomain.networks import NamedNetwork
from onedomain.settings import Settings, search


class GUDSettings(Settings):
    """γ weighs a mean over features, and the rate is per sample: the scales of SDG's α and ascent rate."""

    gammas: tuple[float, ...] = Field(
        (1.0,), min_length=1, description="γ, weight of L_const; several, with commas: an ensemble of as many networks"
    )
    rounds: int = Field(
        6,
        ge=1,
        description="K, how often the training set grows (released SDG code: 6)",
        json_schema_extra=search(3, 6),
    )
    round_every: int = Field(100, ge=1, description="T_min, steps before each round (released SDG code: 100)")
    round_size: int = Field(5_000, ge=1, description="images that a round adds, at most as many as there are")
    ascent_rate: float = Field(
        1 / 8,
        gt=0,
        description="rate of Eq. 4, per sample (released SDG code: 1 on the mean of 32)",
        json_schema_extra=search(around=4, log=True),
    )
    ascent_steps: int = Field(15, ge=1, description="T_adv of Eq. 4 (released SDG code: 15)")
    range_margin: float = Field(
        2.0,
        ge=0,
        description="how far an image may leave the image range, in its widths",
        json_schema_extra=search(0, 2),
    )

    @field_validator("gammas", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("gammas")
    @classmethod
    def _not_negative(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if min(value) < 0:
            raise ValueError("numbers of at least 0, with commas between them")
        return value


class GUD(Method):
    """Adversarial data augmentation for unseen domains.

    Every round, images drawn from the training set climb L_task − γ·L_const (Eq. 4) and are added to it. Between the
    rounds, and after the last one, the network is trained on the set as it is. With several γ a network is trained for
    each, and the most confident one answers.
    """

    Settings = GUDSettings
    settings: GUDSettings
    summary = "Images that climb the loss join the training set."
    needs_embedding = True
    citation = "Volpi et al., Generalizing to Unseen Domains via Adversarial Data Augmentation, NeurIPS 2018"
    cost = 1.0
    state = ("networks", "optimisers", "augmentations")

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        first = self.network.module
        others = [copy.deepcopy(first) for _ in self.settings.gammas[1:]]
        self.auxiliary = nn.ModuleList(others) if others else None
        self.networks = [self.network, *(replace(self.network, module=other) for other in others)]
        self.optimisers = [self.optimiser_for(network.module) for network in self.networks]
        if setup.source is not None:
            names = [f"augmented-{place + 1}" for place in range(len(self.networks))] if others else ["augmented"]
            self.augmentations = [
                Augmentation(
                    setup.source, self.settings.round_size, (self.seed, place), self.folder and self.folder / name
                )
                for place, name in enumerate(names)
            ]

    def preparation_cost(self, images: int) -> float:
        settings, size = self.settings, min(images, self.settings.round_size)
        return ASCENT_COST * settings.ascent_steps * settings.rounds * size * len(settings.gammas) / 32

    @property
    def prepared(self) -> float:
        return sum(len(each.domains) for each in self.augmentations) / (self.settings.rounds * len(self.augmentations))

    @property
    def begins(self) -> int:
        return self.settings.round_every

    def prepare(self, step: int) -> Iterator[Part]:
        for place, augmentation in enumerate(self.augmentations):
            number = len(augmentation.domains) + 1
            if number > self.settings.rounds or step < number * self.settings.round_every:
                continue
            of = "" if len(self.networks) == 1 else f" of network {place + 1}"
            for done in augmentation.make(partial(self._climb, place), self.device):
                yield Part(f"round {number}{of}", done)

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        losses = []
        for network, optimiser, augmentation in zip(self.networks, self.optimisers, self.augmentations, strict=True):
            if augmentation.domains:  # the grown training set, every image as likely
                pool = augmentation.pool
                batch = self.varied(pool.batch(torch.randint(len(pool), (len(batch.labels),)).numpy(), self.device))
            loss = task_loss(network(batch.images), batch.labels, self.source.void).mean()
            losses.append(descend(optimiser, loss, self.scaler)["loss"])
        return {"loss": torch.stack(losses).mean()}

    @property
    def answering(self) -> tuple[NamedNetwork, ...]:
        return tuple(self.networks)

    @torch.no_grad()
    def predictive(self, images: torch.Tensor, draws: int | None = None) -> Predictive:
        """Of an ensemble, the network that is the most confident of an image."""
        said, embeddings = [], []
        for network in self.networks:
            network.module.eval()
            logits, z = network.look(images)
            said.append(logits.double().softmax(1))
            embeddings.append(z)
        every = torch.stack(said)
        sure = every.amax(2, keepdim=True).argmax(0, keepdim=True)
        return Predictive(every.gather(0, sure.expand(1, *every.shape[1:])), embedding=embeddings[0])

    def objective(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """What an image climbs, its distance in the embedding space aside; one value per sample."""
        return task_loss(logits, labels, self.source.void)

    def _climb(self, place: int, batch: Batch) -> torch.Tensor:
        network, gamma = self.networks[place], self.settings.gammas[place]
        network.module.eval()
        with frozen(network.module):
            with torch.no_grad():
                _, z = network.embed(batch.images)

            def objective(x_plus: torch.Tensor) -> torch.Tensor:
                logits, z_plus = network.embed(x_plus)
                constraint = semantic_distance(z, z_plus) / (z[0].numel() / 2)
                return ada_objective(self.objective(logits, batch.labels), constraint, 0.0, gamma, beta=0.0)

            return ascend(
                objective,
                batch.images,
                rate=self.settings.ascent_rate,
                steps=self.settings.ascent_steps,
                project=near_range(self.source.value_range, self.settings.range_margin),
            )
