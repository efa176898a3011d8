"""Collects what a run answers on a domain, while it is scored."""

from __future__ import annotations

import numpy as np
import torch

from onedomain.components.compact import as_bytes, as_vectors
from onedomain.components.predictive import Predictive
from onedomain.data.domain import Batch, Domain
from onedomain.evaluation.outcome import Outcome

SAMPLE = 200  # images of a domain whose embedding and probabilities are kept
SAMPLE_IMAGES = 40  # of these, how many are kept themselves
SAMPLE_MASKS = 6  # of these, how many are kept with a class for each pixel, for segmentation
LONGEST_MASK = 512  # of their sides: larger ones are thinned out


class Gathering:
    def __init__(self, domain: Domain, unseen: bool) -> None:
        self.domain, self.unseen = domain, unseen
        # Of the number of images alone: all runs show the same ones. In random order: folders are sorted by class.
        self.sample = np.random.default_rng(len(domain)).permutation(len(domain))[:SAMPLE]
        self.done = 0
        self.columns: dict[str, list[np.ndarray]] = {}
        self.sampled: dict[str, dict[int, np.ndarray]] = {}  # by the place in the sample

    def add(self, batch: Batch, said: Predictive, domain_score: torch.Tensor | None) -> None:
        confidence, predicted = said.probabilities.max(1)
        values = {"confidence": confidence, "uncertainty": said.entropy}
        if self.domain.dense:
            counted = torch.ones_like(batch.labels, dtype=torch.bool)
            if self.domain.void is not None:
                counted = batch.labels != self.domain.void
            values["shares_right"] = (predicted == batch.labels).double()
            values = {name: _mean_of_pixels(value, counted) for name, value in values.items()}
        if domain_score is not None:
            values["domain_score"] = domain_score
        for name, value in values.items():
            self._keep(name, value.float())
        if not self.domain.dense:
            self._keep("labels", batch.labels)
            self._keep("predicted", predicted)
        self._add_sample(batch, said)
        self.done += len(batch.images)

    def _keep(self, name: str, value: torch.Tensor) -> None:
        self.columns.setdefault(name, []).append(value.cpu().numpy())

    def _add_sample(self, batch: Batch, said: Predictive) -> None:
        inside = (self.sample >= self.done) & (self.sample < self.done + len(batch.images))
        places = np.flatnonzero(inside)
        if not len(places):
            return
        chosen = torch.from_numpy(self.sample[places] - self.done).to(batch.images.device)
        probabilities = said.probabilities[chosen]
        if self.domain.dense:
            probabilities = probabilities.flatten(2).mean(2)
        taken: dict[str, np.ndarray] = {"sample_probabilities": probabilities.float().cpu().numpy()}
        if said.embedding is not None:
            taken["sample_embedding"] = as_vectors(said.embedding[chosen])
        pictured = chosen[: int((places < SAMPLE_IMAGES).sum())]  # places rise
        if len(pictured):
            taken["sample_images"] = as_bytes(batch.images[pictured], self.domain.value_range)
        shown = chosen[: int((places < SAMPLE_MASKS).sum())]
        if self.domain.dense and len(shown):
            taken |= self._masks(batch, said, shown)
        for name, values in taken.items():
            self.sampled.setdefault(name, {}).update(zip(places.tolist(), values, strict=False))  # pictures: the first

    def _masks(self, batch: Batch, said: Predictive, chosen: torch.Tensor) -> dict[str, np.ndarray]:
        """Pictures of the prediction per pixel; of large images every n-th pixel, since classes have no mean."""
        thin = -(-max(batch.images.shape[2:]) // LONGEST_MASK)
        images = batch.images[chosen][:, :, ::thin, ::thin]
        return {
            "mask_images": as_bytes(images, self.domain.value_range, LONGEST_MASK),
            "mask_truth": batch.labels[chosen][:, ::thin, ::thin].short().cpu().numpy(),
            "mask_predicted": said.probabilities[chosen].argmax(1)[:, ::thin, ::thin].short().cpu().numpy(),
            "mask_uncertainty": said.entropy[chosen][:, ::thin, ::thin].half().cpu().numpy(),
        }

    def outcome(self) -> Outcome:
        """All of it, when the last batch was added."""
        columns = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        columns |= {name: np.stack([rows[place] for place in sorted(rows)]) for name, rows in self.sampled.items()}
        domain = self.domain
        return Outcome(
            domain=domain.name,
            split=domain.split,
            unseen=self.unseen,
            count=len(domain),
            classes=domain.classes,
            note=domain.note,
            fingerprint=domain.fingerprint,
            benchmark=None,
            value_range=domain.value_range,
            void=domain.void,
            sample=self.sample,
            **columns,
        )


def _mean_of_pixels(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """(N, H, W) → (N,): over the pixels that count; NaN where none does."""
    return (values * counted).flatten(1).sum(1) / counted.flatten(1).sum(1)
