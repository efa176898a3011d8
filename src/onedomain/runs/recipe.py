"""A recipe: settings of a method under a name, or in a file that `tune` wrote and a person may write."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from onedomain.data.files import read_file, write_atomically
from onedomain.errors import UserError, unknown
from onedomain.runs.plain_yaml import parse_yaml
from onedomain.runs.rows import Count, Number, Setting, Text

DEFAULT = "default"  # the usual settings
FILE = "FILE.yaml"  # stands for a file in a list of what is allowed
MOST_BYTES = 2**20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Chosen(_Strict):
    """How `tune` chose the settings of a recipe: by which objective, on what, and among how many."""

    objective: Text
    source: Text  # the fingerprint of the images that it was trained and judged on
    benchmark: Text | None = None
    score: Number
    usual: Number | None = None  # the score of the usual settings
    trials: Count
    seeds: Count
    searched: tuple[Text, ...]
    onedomain: Text
    date: Text


class RecipeFile(_Strict):
    method: Text
    settings: Annotated[dict[Text, Setting], Field(min_length=1)]
    chosen: Chosen | None = None

    def write(self, path: Path) -> None:
        write_atomically(path, yaml.safe_dump(self.model_dump(mode="json", exclude_none=True), sort_keys=False))


class Recipe(_Strict):
    """Settings of a method, and what run.yaml calls them."""

    name: str = DEFAULT
    settings: Mapping[str, Any] = {}


def is_file(recipe: str | Path) -> bool:
    """Whether a recipe is meant as a file, there or not."""
    return isinstance(recipe, Path) or Path(recipe).suffix in (".yaml", ".yml")


def read_recipe(path: Path) -> RecipeFile:
    if not path.is_file():
        raise UserError("recipe", f"{path} is not a file", "a recipe that onedomain tune wrote")
    return parse_yaml(path, read_file(path, MOST_BYTES), RecipeFile, "a recipe that onedomain tune wrote")


def find_recipe(given: str | Path | Recipe | None, method: str, named: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """The recipe of a method by its name, among those that it has, or from a file."""
    if isinstance(given, Recipe):
        return given
    if given is None or given == DEFAULT:
        return Recipe()
    if not isinstance(given, (str, Path)):
        raise UserError("recipe", f"got {given!r:.50}", "the name of a recipe, or a file")
    if is_file(given):
        path = Path(given)
        found = read_recipe(path)
        if found.method != method:
            raise UserError("recipe", f"{path} is of the method {found.method}", f"a recipe of {method}")
        digest = hashlib.sha256(read_file(path, MOST_BYTES)).hexdigest()[:12]
        return Recipe(name=f"{path.name} {digest}", settings=found.settings)
    if given not in named:
        raise unknown("recipe", str(given), [DEFAULT, *named, FILE])
    return Recipe(name=str(given), settings=named[str(given)])
