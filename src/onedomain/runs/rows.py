"""The rows of results.jsonl and metrics.jsonl: what each may hold, and the one reader of either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.data.files import read_file
from onedomain.errors import UserError
from onedomain.settings import first_problem

ALLOWED = "a file written by onedomain"
Text = Annotated[str, Field(max_length=100_000)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]  # beyond that no axis and no mean can show it
Scalar = bool | int | float | Text | None
Setting = Scalar | list[Scalar]
SHARES = ("accuracy", "miou", "error_auroc", "aurc", "flagged", "ece")


class Strict(BaseModel):
    """What is read is taken as it is: a text is no number, and no number is infinite."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


def _with_steps(settings: dict[str, Any]) -> dict[str, Any]:
    if type(settings.get("steps")) is not int:
        raise ValueError("settings with a whole number of steps")
    return settings


Settings = Annotated[dict[Text, Setting], AfterValidator(_with_steps)]


class Adapted(Strict):
    """How the run of a record was adapted, in short."""

    method: Text
    settings: Settings
    usually: dict[Text, Setting] | None = None
    from_scratch: bool
    target: Text
    benchmark: Text | None = None
    split: Text = ""
    fingerprint: Text = ""
    shots: Count
    draw: Count
    missing_classes: list[Text] = []
    parent: Text | None = None
    parent_weights: Text = ""
    drawn: Count = 0
    adapted_before: bool = True


class Record(Strict):
    """One number of one run: a metric on a domain, and all that a table must say of it.

    Records of an earlier version lack some of it; what must be there to show them is asked for where they are shown.
    """

    domain: Text
    metric: Text
    value: Number
    split: Text = ""
    unseen: bool = False
    count: Count = 0
    note: Text = ""
    low: Number | None = None
    high: Number | None = None
    data: Text = ""
    corruption: Literal[tuple(KINDS)] | None = None  # type: ignore[valid-type]
    severity: Literal[tuple(SEVERITIES)] | None = None  # type: ignore[valid-type]
    onedomain: Text = ""
    method: Text = ""
    benchmark: Text | None = None
    trained_on: Text | None = None
    seed: Count = 0
    steps: Count = 0
    settings: Settings = {}
    usually: dict[Text, Setting] | None = None
    recipe: Text = "default"
    source: Text | None = None
    parameters: Count = 0
    training_parameters: Count = 0
    train_seconds: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    peak_memory_mb: Count = 0
    device: Text = ""
    threads: Count = 1
    processes: Count = 1
    date: Text = ""
    adaptation: Adapted | None = None
    environment: dict[Text, Text] = {}

    @model_validator(mode="after")
    def _goes_together(self) -> Record:
        if (self.metric in SHARES or self.metric.startswith("iou/")) and not 0 <= self.value <= 1:
            raise ValueError(f"value of {self.metric} from 0 to 1")
        if (self.corruption is None) != (self.severity is None):
            raise ValueError("corruption and severity together")
        return self


class Measured(Strict):
    """One line of metrics.jsonl: means of what was logged up to a step, or measurements of a generated domain."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Number]

    step: Count
    seconds: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    memory_mb: Count = 0
    domain: Text = ""


def read_records(path: Path) -> list[dict[str, Any]]:
    """The rows of a results.jsonl, which is always written whole; none if it is not there."""
    lines = _lines(path)
    if lines and lines[-1]:
        raise UserError(str(path), "ends in the middle of a line", "a whole file, as onedomain evaluate writes it")
    return _rows(path, lines[:-1], Record)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics.jsonl; what follows the last line break was cut off by a kill."""
    return _rows(path, _lines(path)[:-1], Measured)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    try:
        return read_file(path).decode().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(str(path), f"is no text ({error.reason} at byte {error.start:,})", ALLOWED) from None


def _rows(path: Path, lines: list[str], kind: type[Strict]) -> list[dict[str, Any]]:
    """The rows as they stand there, each of which fits the schema."""
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            kind.model_validate_json(line)
            rows.append(json.loads(line))
        except ValidationError as error:
            field, given, allowed = first_problem(error)
            what = f"{field} {given}" if field else f"is no JSON object ({given})"
            raise UserError(str(path), f"line {number}: {what}", allowed) from None
        except ValueError as error:
            raise UserError(str(path), f"line {number}: is no JSON ({error})", ALLOWED) from None
    return rows
