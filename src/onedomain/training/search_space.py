"""Where `tune` looks for the value of each setting: as declared beside the settings, or in a file of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, RootModel, model_validator

from onedomain.data.files import read_file
from onedomain.errors import UserError, unknown
from onedomain.runs.plain_yaml import parse_yaml
from onedomain.settings import Settings, parse_settings

if TYPE_CHECKING:
    from optuna import Trial

ALLOWED = "settings with {low: 0.1, high: 10, log: true} or {among: [a, b]} each"
MOST_BYTES = 2**20
AT_RANDOM = 6  # trials before settings are chosen by those that went well
Value = bool | int | float | str


class Dimension(BaseModel):
    """From `low` to `high`, on a logarithmic scale or not, up to a factor `around` the usual value, or `among` some."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    around: float | None = None
    among: tuple[Value, ...] = ()

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Dimension:
        ranged = self.low is not None and self.high is not None
        if [ranged, self.around is not None, len(self.among) > 1].count(True) != 1:
            raise ValueError(ALLOWED)
        if (
            self.low is not None
            and self.high is not None
            and not (self.low < self.high and (self.low > 0 or not self.log))
        ):
            raise ValueError("low below high, and above 0 if log")
        if self.around is not None and self.around <= 1:
            raise ValueError("around above 1")
        return self

    def beside(self, usual: Any) -> Dimension:
        """With both ends, where the usual value gives them."""
        if self.around is None:
            return self
        return Dimension(low=usual / self.around, high=usual * self.around, log=True)

    def holds(self, value: Any) -> bool:
        if self.low is None or self.high is None:
            return value in self.among
        return self.low <= value <= self.high

    def suggest(self, trial: Trial, name: str, whole: bool) -> Value:
        if self.low is None or self.high is None:
            chosen: Value = trial.suggest_categorical(name, self.among)  # type: ignore[assignment]
            return chosen
        if whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


class _File(RootModel[dict[str, Dimension]]):
    pass


class Space:
    """The settings that are searched, each with its dimension; all others are fixed."""

    def __init__(self, kind: type[Settings], fixed: Mapping[str, Any], dimensions: Mapping[str, Dimension]) -> None:
        self.kind, self.fixed = kind, fixed
        self.usual = parse_settings(kind, fixed)
        self.dimensions = {name: each.beside(getattr(self.usual, name)) for name, each in dimensions.items()}
        if not self.dimensions:
            raise UserError("--space", "no setting is searched", "fewer --set, or a file of settings")

    @property
    def usual_values(self) -> dict[str, Value] | None:
        """The usual values of what is searched; None if one of them lies outside."""
        values = {name: getattr(self.usual, name) for name in self.dimensions}
        return values if all(self.dimensions[name].holds(value) for name, value in values.items()) else None

    def suggest(self, trial: Trial) -> dict[str, Value]:
        """Further values, in as many digits as a person reads."""
        from optuna.samplers import TPESampler

        values = {}
        for place, (name, each) in enumerate(self.dimensions.items()):
            # A seed for each value: what is proposed is the same after a kill between two of them.
            [seed] = np.random.SeedSequence([trial.number, place]).generate_state(1)
            trial.study.sampler = TPESampler(seed=int(seed), n_startup_trials=AT_RANDOM, constant_liar=True)
            values[name] = each.suggest(trial, name, self._whole(name))
        return self.readable(values)

    def readable(self, values: Mapping[str, Any]) -> dict[str, Value]:
        usual = self.usual_values or {}
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) and value != usual.get(name) else value
            for name, value in values.items()
        }

    def settings(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """All settings with the chosen ones in place, checked, as a file holds them."""
        return parse_settings(self.kind, {**self.fixed, **chosen}).model_dump(mode="json")

    def as_dict(self) -> dict[str, Any]:
        return {name: each.model_dump(mode="json", exclude_defaults=True) for name, each in self.dimensions.items()}

    def _whole(self, name: str) -> bool:
        return self.kind.model_fields[name].annotation is int


def space_of(kind: type[Settings], fixed: Mapping[str, Any], given: Mapping[str, Any], file: str | None) -> Space:
    """The space of a method with what is `fixed`; what the user has `given` of that by itself is not searched."""
    if file is None:
        found = {name: Dimension(**each) for name, each in _declared(kind).items() if name not in given}
        return Space(kind, fixed, found)
    path = Path(file)
    if not path.is_file():
        raise UserError("--space", f"{path} is not a file", ALLOWED)
    found = parse_yaml(path, read_file(path, MOST_BYTES), _File, ALLOWED).root
    for name, dimension in found.items():
        if name not in kind.model_fields:
            raise unknown(f"{path}: setting", name, kind.model_fields)
        if name in given:
            raise UserError(f"{path}: {name}", "is set by --set as well", "one of them")
        dimension = dimension.beside(getattr(parse_settings(kind, fixed), name))
        for value in (*dimension.among, *(end for end in (dimension.low, dimension.high) if end is not None)):
            parse_settings(kind, {**fixed, name: value})
    return Space(kind, fixed, found)


def _declared(kind: type[Settings]) -> dict[str, Any]:
    """What is declared beside a field, or beside the field that it took the place of."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        for name, info in getattr(each, "model_fields", {}).items():
            extra = info.json_schema_extra
            if isinstance(extra, dict) and "search" in extra:
                found[name] = extra["search"]
    return {name: found[name] for name in kind.model_fields if name in found}
