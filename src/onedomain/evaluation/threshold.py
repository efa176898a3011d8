"""What of a calibration says where the source ends: plain numbers, for reports too, which load no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open

from onedomain.errors import UserError
from onedomain.settings import first_problem


class Threshold(BaseModel):
    """The domain score above which an image is out of domain, and what that was found with."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)

    threshold: float
    images: int = Field(ge=1)
    held_out: bool


def check_threshold(where: str, values: Any) -> Threshold:
    try:
        return Threshold.model_validate(values)
    except ValidationError as error:
        field, given, allowed = first_problem(error)
        raise UserError(where, f"{field or 'calibration'} {given}", allowed or "a file written by onedomain") from None


def read_threshold(path: Path) -> Threshold:
    """From the header of a calibration file: its tensors are not read."""
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        with safe_open(path, framework="numpy") as file:
            values = dict(json.loads((file.metadata() or {})["structure"])["dict"])
        found = {name: values.get(name) for name in Threshold.model_fields}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError):
        raise UserError(str(path), "has no threshold", "the file that onedomain train wrote") from None
    return check_threshold(str(path), found)
