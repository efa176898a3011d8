"""What is kept for figures: a sample of each augmented domain S⁺, and moments of the training.

A sample is images beside their originals, and where they are embedded: `augmented/augmented-1.sample.safetensors`,
written when the domain is complete, and `augmented/augmented-1.embedding.safetensors`, written when the trained network
is scored. A moment is one small file; the method decides what it holds (`Method.snapshot`). Taking one changes no
weight and no random number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onedomain.data.arrays import ALLOWED, SUFFIX, ByteArray, FloatArray, Form, check_forms, load_arrays
from onedomain.data.domain import IntArray
from onedomain.errors import UserError
from onedomain.runs.layout import AUGMENTED, SNAPSHOTS

COLUMNS, GAP = 8, 2  # of a mosaic: images in a row, and white pixels between them


_PICTURES = Form("u", ("count", "height", "width", "channels"))
SAMPLE = {
    "originals": _PICTURES,
    "images": _PICTURES,
    "labels": Form("iu", ("labelled",)),
    "origins": Form("iu", ("count",)),
}
# What figures know of a moment; a method may keep other arrays.
MOMENT = {
    "images": Form("u", ("pictures", "height", "width", "channels"), needed=False),
    "embedding": Form("f", ("count", "features"), needed=False),
    "perturbed_embedding": Form("f", ("count", "features"), needed=False),
    "perturbation": Form("f", ("measured", "layers"), needed=False),
    "perturbation_maps": Form("f", ("pictures", "high", "wide"), needed=False),
    "mixed_labels": Form("f", ("mixed", "classes"), needed=False),
    "labels": Form("iu", ("labelled",), needed=False, below="classes"),
}


@dataclass(frozen=True)
class AugmentedSample:
    """Some images of an augmented domain, and of more of them where they are embedded."""

    domain: str
    originals: ByteArray = field(repr=False)  # (N, height, width, channels), cut off at the source's range, as `images`
    images: ByteArray = field(repr=False)
    labels: IntArray = field(repr=False)  # (M,), the first N are those of the images; empty for segmentation
    origins: IntArray = field(repr=False)  # where an original comes from: 0 is the source, n the n-th augmented domain
    embedding: FloatArray | None = field(default=None, repr=False)  # float16 of (M, D); None before the run was scored


def read_samples(folder: Path) -> list[AugmentedSample]:
    """The samples of a run folder's augmented domains, in the order they were made."""
    samples = []
    for path in numbered(folder, f".sample{SUFFIX}"):
        about, arrays = load_arrays(path)
        check_forms(path, arrays, SAMPLE)
        embedded = path.with_name(path.name.replace(".sample.", ".embedding."))
        if embedded.exists():
            found = load_arrays(embedded)[1]
            check_forms(embedded, found, {"embedding": Form("f", ("rows", "features"))})
            arrays["embedding"] = found["embedding"]
        if not isinstance(about.get("domain"), str) or not arrays["images"].shape[3]:
            raise UserError(str(path), "has no domain, or images without channels", ALLOWED)
        kept: dict[str, Any] = {name: arrays.get(name) for name in (*SAMPLE, "embedding")}
        samples.append(AugmentedSample(about["domain"], **kept))
    return samples


def mosaic(sample: AugmentedSample) -> ByteArray:
    """Two rows of images on white: originals, and below each what became of it. Of as many classes as there is room."""
    chosen = _chosen(sample)
    _, height, width, channels = sample.images.shape
    pixels = np.full((2 * height + GAP, COLUMNS * (width + GAP) - GAP, channels), 255, np.uint8)
    for column, place in enumerate(chosen):
        left = column * (width + GAP)
        pixels[:height, left : left + width] = sample.originals[place]
        pixels[height + GAP :, left : left + width] = sample.images[place]
    return pixels if channels in (1, 3) else pixels.mean(2, keepdims=True).astype(np.uint8)


def _chosen(sample: AugmentedSample) -> list[int]:
    """Images made from the source itself if there are, one of each class before a second of any."""
    places = np.flatnonzero(sample.origins == 0) if (sample.origins == 0).any() else np.arange(len(sample.images))
    seen: dict[int, int] = {}
    turns = []
    for place in places:
        label = int(sample.labels[place]) if len(sample.labels) else 0
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], label, int(place)))
    return [place for _, _, place in sorted(turns)[:COLUMNS]]


def numbered(folder: Path, ending: str) -> list[Path]:
    """The files augmented-1, augmented-2, … with this ending, by their numbers."""
    inside = next((folder / name for name in AUGMENTED if (folder / name).is_dir()), None)
    numbers = {}
    for path in [] if inside is None else inside.glob(f"augmented-*{ending}"):
        number = path.name.removeprefix("augmented-").removesuffix(ending)
        if number.isdecimal():
            numbers[path] = int(number)
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(frozen=True)
class Snapshot:
    """A method's arrays on a fixed sample of the source after `step` steps, by name."""

    step: int
    arrays: dict[str, np.ndarray] = field(repr=False)


def read_snapshots(folder: Path) -> list[Snapshot]:
    snapshots, sizes = [], dict[str, int]()  # of the first, and of all
    for path in sorted((folder / SNAPSHOTS).glob(f"step-*{SUFFIX}")):
        about, arrays = load_arrays(path)
        sizes = check_forms(path, arrays, MOMENT, **sizes)
        odd = sizes.get("mixed", 0) % max(1, sizes.get("labelled", 0))  # none is labelled of segmentation
        if odd or any(size == 0 for name, size in sizes.items() if name != "labelled"):
            raise UserError(str(path), "has arrays that are empty or do not go together", ALLOWED)
        if type(about.get("step")) is not int or not 0 <= about["step"] < 2**40:
            raise UserError(str(path), f"is of step {about.get('step')!r}", ALLOWED)
        snapshots.append(Snapshot(about["step"], arrays))
    return snapshots
