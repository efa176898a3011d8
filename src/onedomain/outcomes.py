"""What a run answered, image by image, kept beside its records: figures and reports need neither data nor model.

One file a domain, `outcomes/<benchmark>/<domain>.safetensors` in the run folder, readable by any tool: plain tensors,
and what they are of as JSON in the file's header.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from onedomain.arrays import SUFFIX, ByteArray, FloatArray, as_bytes, as_vectors, load_arrays, not_ours, save_arrays
from onedomain.data.domain import Batch, Domain, IntArray
from onedomain.uncertainty import Predictive

OUTCOMES = "outcomes"
OWN = "own"  # stands for a benchmark where a user's own images were scored
SAMPLE = 200  # images of a domain whose embedding and probabilities are kept
SAMPLE_IMAGES = 40  # of these, how many are kept themselves
SAMPLE_MASKS = 6  # of these, how many are kept with a class for each pixel, where pixels have labels
LONGEST_MASK = 512  # of their sides: larger ones are thinned out

_TEXTS = ("domain", "split", "unseen", "count", "classes", "note", "fingerprint", "benchmark", "value_range", "void")
MASKS = ("mask_images", "mask_truth", "mask_predicted", "mask_uncertainty")
_ARRAYS = (
    "labels",
    "predicted",
    "shares_right",
    "confidence",
    "uncertainty",
    "domain_score",
    "sample",
    "sample_probabilities",
    "sample_embedding",
    "sample_images",
    *MASKS,
)


@dataclass(frozen=True)
class Outcome:
    """The answers of a run on one domain, in the domain's order, and a fixed sample of its images.

    `confidence` is the probability of the class that was predicted, `uncertainty` the entropy of the prediction in
    nats; `domain_score` is None for a run without a calibration. `sample` are indices into the domain, the same for
    every run that was scored on as many images; the embedding (None if the network's layer is not named) and the
    probabilities are of all of them, `sample_images`, bytes of (height, width, channels), of the first ones.

    Where pixels have labels, a number for each would be too large: `labels` and `predicted` are None, `shares_right` is
    the share of an image's pixels that are right, the other values are means over its pixels; void ones do not count,
    and an image of nothing else has NaN. Of the first images of the sample there are pictures of their own size: bytes
    (`mask_images`), true and predicted classes (n, H, W), and the entropy of each pixel in nats; `void` is the class
    that never counts.
    """

    domain: str
    split: str
    unseen: bool
    count: int
    classes: tuple[str, ...]
    note: str
    fingerprint: str
    benchmark: str | None
    value_range: tuple[float, float]  # of a pixel: what is 0 and what is 255 in `sample_images`
    confidence: FloatArray = field(repr=False)
    uncertainty: FloatArray = field(repr=False)
    sample: IntArray = field(repr=False)
    sample_probabilities: FloatArray = field(repr=False)
    sample_images: ByteArray = field(repr=False)
    labels: IntArray | None = field(default=None, repr=False)
    predicted: IntArray | None = field(default=None, repr=False)
    shares_right: FloatArray | None = field(default=None, repr=False)
    domain_score: FloatArray | None = field(default=None, repr=False)
    sample_embedding: FloatArray | None = field(default=None, repr=False)
    void: int | None = None
    mask_images: ByteArray | None = field(default=None, repr=False)
    mask_truth: IntArray | None = field(default=None, repr=False)
    mask_predicted: IntArray | None = field(default=None, repr=False)
    mask_uncertainty: FloatArray | None = field(default=None, repr=False)

    @property
    def dense(self) -> bool:
        """Whether pixels have labels."""
        return self.labels is None

    @property
    def right(self) -> FloatArray:
        """1 for an image whose class was found, else 0; where pixels have labels, the share of them that is right."""
        if self.shares_right is not None:
            return self.shares_right
        return np.asarray(self.labels == self.predicted, np.float64)

    def save(self, folder: Path, benchmark: str | None) -> Path:
        """Write the file into a run folder, whole or not at all."""
        path = folder / OUTCOMES / file_name(benchmark or OWN) / f"{file_name(self.domain)}{SUFFIX}"
        texts = {name: getattr(self, name) for name in _TEXTS} | {"benchmark": benchmark}
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        for name in arrays.keys() & {"labels", "predicted"}:
            arrays[name] = arrays[name].astype(np.min_scalar_type(len(self.classes)))
        save_arrays(path, texts, arrays)
        return path


def load_outcome(path: Path) -> Outcome:
    """What `Outcome.save` wrote; refuses anything else."""
    texts, arrays = load_arrays(path)
    for name in arrays.keys() & {"labels", "predicted"}:
        arrays[name] = arrays[name].astype(np.int64)
    try:
        texts |= {name: tuple(texts[name]) for name in ("classes", "value_range")}
        return Outcome(**texts, **arrays)
    except (KeyError, TypeError) as error:
        raise not_ours(path, error) from None


def read_outcomes(folder: Path, benchmark: str) -> dict[str, Outcome]:
    """All outcomes in a run folder of one benchmark (`own` for images of the user's own), by their domains' names."""
    files = sorted((folder / OUTCOMES / file_name(benchmark)).glob(f"*{SUFFIX}"))
    outcomes = [load_outcome(path) for path in files]
    return {outcome.domain: outcome for outcome in outcomes}


def file_name(name: str) -> str:
    """The name as it is if any file system takes it and keeps it apart from others, else what can stay and a digest.

    >>> file_name("mnist-m"), file_name("Köln/Nacht")
    ('mnist-m', 'k-ln-nacht-68212e4b')
    """
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip(".-")[:60]
    return name if name and name == plain else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


class Gathering:
    """Collects an outcome while a domain is scored, batch by batch in the domain's order."""

    def __init__(self, domain: Domain, unseen: bool) -> None:
        self.domain, self.unseen = domain, unseen
        # Of the number of images alone: all runs show the same ones. In random order: folders are sorted by class.
        self.sample = np.random.default_rng(len(domain)).permutation(len(domain))[:SAMPLE]
        self.done = 0
        self.columns: dict[str, list[np.ndarray]] = {}
        self.sampled: dict[str, list[np.ndarray]] = {}
        self.places: list[IntArray] = []  # in the sample, of what is in `sampled`

    def add(self, batch: Batch, said: Predictive, domain_score: torch.Tensor | None) -> None:
        """Take the next images and what was said of them."""
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
        probabilities = (
            said.probabilities[chosen].flatten(2).mean(2) if self.domain.dense else said.probabilities[chosen]
        )
        taken: dict[str, np.ndarray] = {"sample_probabilities": probabilities.float().cpu().numpy()}
        if said.embedding is not None:
            taken["sample_embedding"] = as_vectors(said.embedding[chosen])
        self.places.append(places)
        pictured = chosen[: int((places < SAMPLE_IMAGES).sum())]  # places rise
        if len(pictured):
            taken["sample_images"] = as_bytes(batch.images[pictured], self.domain.value_range)
        shown = chosen[: int((places < SAMPLE_MASKS).sum())]
        if self.domain.dense and len(shown):
            taken |= self._masks(batch, said, shown)
        for name, values in taken.items():
            self.sampled.setdefault(name, []).append(values)

    def _masks(self, batch: Batch, said: Predictive, chosen: torch.Tensor) -> dict[str, np.ndarray]:
        """Pictures of what was said of each pixel; of large images every n-th one, since classes have no mean."""
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
        places = np.concatenate(self.places)
        in_order = {"sample_images": np.argsort(places[places < SAMPLE_IMAGES])}
        in_order |= dict.fromkeys(MASKS, np.argsort(places[places < SAMPLE_MASKS]))
        for name, parts in self.sampled.items():
            columns[name] = np.concatenate(parts)[in_order.get(name, np.argsort(places))]
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
