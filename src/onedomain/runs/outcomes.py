"""Outcomes in a run folder: one file per domain, `outcomes/<benchmark>/<domain>.safetensors`.

Plain tensors, readable by any tool; what they are of stands as JSON in the file's header.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from onedomain.data.arrays import ALLOWED, SUFFIX, Form, check_forms, load_arrays, save_arrays
from onedomain.errors import UserError
from onedomain.evaluation.outcome import Outcome
from onedomain.runs.layout import OUTCOMES, OWN
from onedomain.runs.rows import Strict, Text
from onedomain.settings import first_problem

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
    try:
        about = _About.model_validate_json(json.dumps(texts), strict=True)
    except ValidationError as error:
        field, given, allowed = first_problem(error)
        raise UserError(str(path), f"{field} {given}", allowed or ALLOWED) from None
    dense = "labels" not in arrays
    check_forms(path, arrays, _forms(dense), count=about.count, classes=len(about.classes))
    if unknown := arrays.keys() - set(_ARRAYS):
        raise UserError(str(path), f"has an array {min(unknown)!r}", ALLOWED)
    for name in arrays.keys() & {"labels", "predicted"}:
        arrays[name] = arrays[name].astype(np.int64)
    return Outcome(**dict(about), **arrays)


class _About(Strict):
    """The texts and numbers of an outcome."""

    model_config = ConfigDict(extra="forbid")

    domain: Text
    split: Text
    unseen: bool
    count: Annotated[int, Field(ge=1, lt=2**40)]
    classes: Annotated[tuple[Text, ...], Field(min_length=1)]
    note: Text
    fingerprint: Text
    benchmark: Text | None
    value_range: tuple[float, float]
    void: int | None = None


def _forms(dense: bool) -> dict[str, Form]:
    """An image of void pixels alone has no answer: NaN. `sample_images` are of the first of the sample."""
    answer = Form("f", ("count",), finite=False)
    label = Form("iu", ("count",), needed=not dense, below="classes")
    picture = ("pictures", "high", "wide")
    return {
        "confidence": answer,
        "uncertainty": answer,
        "shares_right": answer._replace(needed=dense),
        "domain_score": answer._replace(needed=False),
        "labels": label,
        "predicted": label,
        "sample": Form("iu", ("sample",), below="count"),
        "sample_probabilities": Form("f", ("sample", "classes")),
        "sample_embedding": Form("f", ("sample", "features"), needed=False),
        "sample_images": Form("u", ("shown", "height", "width", "channels")),
        "mask_images": Form("u", (*picture, "bands"), needed=False),
        "mask_truth": Form("iu", picture, needed=False),
        "mask_predicted": Form("iu", picture, needed=False, below="classes"),
        "mask_uncertainty": Form("f", picture, needed=False),
    }


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
