"""Outcomes in a run folder: one file per domain, `outcomes/<benchmark>/<domain>.safetensors`.

Plain tensors, readable by any tool; what they are of stands as JSON in the file's header.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from pathlib import Path

import numpy as np

from onedomain.data.arrays import SUFFIX, load_arrays, not_ours, save_arrays
from onedomain.evaluation.outcome import Outcome
from onedomain.runs.layout import OUTCOMES, OWN

_ARRAYS = [field.name for field in fields(Outcome) if not field.repr]


def save_outcome(outcome: Outcome, folder: Path, benchmark: str | None) -> Path:
    """Write the file into a run folder, whole or not at all."""
    path = folder / OUTCOMES / file_name(benchmark or OWN) / f"{file_name(outcome.domain)}{SUFFIX}"
    texts = {**vars(outcome), "benchmark": benchmark}
    arrays = {name: array for name in _ARRAYS if (array := texts.pop(name)) is not None}
    for name in arrays.keys() & {"labels", "predicted"}:
        arrays[name] = arrays[name].astype(np.min_scalar_type(len(outcome.classes)))
    save_arrays(path, texts, arrays)
    return path


def load_outcome(path: Path) -> Outcome:
    """What `save_outcome` wrote; refuses anything else."""
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
