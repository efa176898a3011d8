"""Settings that a user can change, checked in one place."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from onedomain.errors import UserError, unknown

MOST = 10**9  # of whatever is counted


def search(
    low: float | None = None,
    high: float | None = None,
    *,
    log: bool = False,
    around: float | None = None,
    among: tuple[bool | int | float | str, ...] = (),
) -> dict[str, Any]:
    """Beside a field: where `tune` looks for its value.

    That is from `low` to `high`, up to a factor `around` the usual value, or `among` some.

    >>> class My(Settings):
    ...     share: float = Field(0.5, json_schema_extra=search(0.1, 0.9))
    """
    found = {"low": low, "high": high, "log": log, "around": around, "among": list(among) or None}
    return {"search": {name: value for name, value in found.items() if value is not None}}


class Settings(BaseModel):
    """What every method has; a method's own settings are a subclass beside its algorithm."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    steps: int = Field(10_000, ge=1, description="training steps (the paper's Digits protocol: 10,000)")
    batch_size: int = Field(32, ge=1, le=2**16, description="images per step (paper: 32)")
    learning_rate: float = Field(
        1e-4,
        gt=0,
        description="rate of the optimiser (paper, Digits: 1e-4)",
        json_schema_extra=search(around=10, log=True),
    )
    optimiser: Literal["adam", "sgd"] = Field(
        "adam", description="what trains the network; sgd has Nesterov momentum 0.9 (paper, Digits: Adam)"
    )
    schedule: Literal["constant", "cosine"] = Field(
        "constant",
        description="of the rate over the run: as it is, or falling to 0 along half a cosine",
        json_schema_extra=search(among=("constant", "cosine")),
    )
    weight_decay: float = Field(0.0, ge=0, description="weight of the squared weights in the loss (L2 penalty)")
    head_start: bool = Field(
        False, description="begin with the last layer fitted to frozen features; for a network with pretrained weights"
    )
    freeze_norm: bool = Field(
        False, description="keep BatchNorm's statistics as they are: those of the weights that training starts from"
    )
    flips_and_crops: bool = Field(
        False, description="mirror training images by chance, and shift them by up to an eighth of their side"
    )
    precision: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the network's passes: single, or mixed with 16 bits, for a device that is faster so"
    )
    checkpoint_every: int = Field(500, ge=1, description="steps between two checkpoints")
    log_every: int = Field(50, ge=1, description="steps that one line of metrics.jsonl averages over")

    @field_validator("*")
    @classmethod
    def _can_be_counted(cls, value: Any) -> Any:
        if isinstance(value, int) and value > MOST:
            raise ValueError(f"at most {MOST:,}")
        return value


AnySettings = TypeVar("AnySettings", bound=Settings)


def parse_settings(kind: type[AnySettings], values: Mapping[str, Any]) -> AnySettings:
    """`values` as settings of the given kind; texts such as "1e-3" are read as what the field needs."""
    for name in values:
        if name not in kind.model_fields:
            raise unknown("setting", name, kind.model_fields)
    try:
        return kind(**values)
    except ValidationError as error:
        field, given, allowed = first_problem(error)
        if field:
            raise UserError(field, given, allowed) from None
        # What is wrong is wrong between fields: those that the rule speaks of, left at their defaults or not.
        told = {name: values.get(name, field.default) for name, field in kind.model_fields.items()}
        told = {name: value for name, value in told.items() if re.search(rf"\b{name}\b", allowed)}
        given = f"got {', '.join(map(str, told.values()))}" if told else "do not go together"
        raise UserError(", ".join(told) or "settings", given, allowed) from None


def first_problem(error: ValidationError) -> tuple[str, str, str]:
    """The first field that is wrong, what was given and what is allowed; no field if several do not go together."""
    first = error.errors(include_url=False)[0]
    allowed = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    given = "is not there" if first["type"] == "missing" else f"got {reprlib.repr(first['input'])}"
    return ".".join(map(str, first["loc"])), given, "" if first["type"] == "missing" else allowed


def given_settings(assignments: list[str], steps: int | None) -> dict[str, Any]:
    """What `--set` and `--steps` change."""
    values: dict[str, Any] = parse_assignments(assignments)
    if steps is None:
        return values
    if "steps" in values:
        raise UserError("--steps", "given together with --set steps", "one of them")
    return {**values, "steps": steps}


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """The `name=value` texts of `--set`, as a mapping.

    >>> parse_assignments(["alpha=1.0", "steps=200"])
    {'alpha': '1.0', 'steps': '200'}
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not (name and equals):
            raise UserError("--set", f"got {assignment!r}", "name=value, such as --set learning_rate=1e-3")
        if name.strip() in values:
            raise UserError("--set", f"{name.strip()!r} is given twice", "each setting once")
        values[name.strip()] = value.strip()
    return values
