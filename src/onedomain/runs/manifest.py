"""run.yaml: what a run is, and whether a folder may be used for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from onedomain.data.domain import LONGEST_SIDE, MOST_CLASSES
from onedomain.data.files import make_folder, read_file, write_atomically
from onedomain.data.folders import holds_anything
from onedomain.data.progress import say
from onedomain.errors import UserError
from onedomain.runs.layout import MANIFEST
from onedomain.runs.plain_yaml import parse_yaml
from onedomain.runs.recipe import DEFAULT
from onedomain.runs.rows import ALLOWED, Count, Setting, Text

WITH_WEIGHTS = "efficientnet-lite0"  # in the package of extra `photos`
MOST_BYTES = 2**23  # of a run.yaml
Side = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]
if TYPE_CHECKING:
    Settings = dict[str, Any]
else:
    Settings = dict[Text, Setting]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Set(_Strict):
    """What has settings, among them the steps."""

    settings: Settings
    usually: Settings | None = None

    @model_validator(mode="after")
    def _has_steps(self) -> _Set:
        for name, values, needed in (("settings", self.settings, True), ("usually", self.usually or {}, False)):
            steps = values.get("steps")
            if (needed or steps is not None) and (type(steps) is not int or steps < 1):
                raise ValueError(f"a whole number of steps from 1 in {name}")
        return self


class NetworkInfo(_Strict):
    """A network of the library's, by `name`; or the class of the user's `own`, of which only weights are kept."""

    name: str | None = None
    own: str | None = None
    embedding: str | None
    perturb: tuple[str, ...]
    weights: str | None = None  # the file that training started from, by its name and SHA-256
    config: dict[str, Any] | None = None  # what describes a network of the hub

    @property
    def has_own(self) -> bool:
        """Whether the network comes with weights."""
        return self.name == WITH_WEIGHTS or (self.name or "").startswith("hf:")

    @property
    def file(self) -> str | None:
        """The file of weights that the user gave; None for random ones, and for those that the network comes with."""
        came_with = self.has_own and (self.name != WITH_WEIGHTS or (self.weights or "").startswith(f"{WITH_WEIGHTS}-"))
        return None if came_with else self.weights


class SourceInfo(_Strict):
    """The source domain: what must be equal to resume a run, and what its model expects of images."""

    name: str
    split: str
    count: Count
    image_shape: tuple[Side, Side, Side]  # height, width, channels
    value_range: tuple[float, float]
    classes: Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_CLASSES)]
    dense: bool
    void: int | None
    fingerprint: str


class Environment(_Strict):
    python: str
    torch: str
    numpy: str
    platform: str
    device: str
    threads: int
    processes: int = 1


class AdaptationInfo(_Set):
    """How a run was adapted to a target domain: what decides the result, and where it came from.

    `images` are the fingerprints of the drawn ones. `before` is the parent's own adaptation, if it had one.
    """

    method: str
    from_scratch: bool  # whether the network is its own, and not the parent's trained on
    target: str
    benchmark: str | None  # whose target it is; None for a user's own images
    split: str
    fingerprint: str  # of the images that were drawn from
    shots: Count  # per class; for segmentation, in all
    draw: Count  # the seed
    missing_classes: tuple[str, ...]  # without a drawn image
    parent: str | None  # its folder
    parent_weights: str
    images: tuple[str, ...]
    before: AdaptationInfo | None = None

    def in_short(self) -> dict[str, Any]:
        """For a record: without the images, of which there may be many, and without the parent's own."""
        told = self.model_dump(mode="json", exclude={"images", "before"})
        return told | {"drawn": len(self.images), "adapted_before": self.before is not None}

    def history(self) -> Iterator[AdaptationInfo]:
        """This adaptation, and those that the parent had been through."""
        yield self
        if self.before is not None:
            yield from self.before.history()


class Manifest(_Set):
    """run.yaml: all that decides a run's result, and what it was made with.

    `usually` has, for each setting that was set otherwise, the value that the recipe gives it: what is not in it is as
    usual. None: the run is of a version that did not keep it.

    `recipe` is what the settings were taken from, but for those that were set one by one: a name, or a file's name and
    digest. `objective` is what a part of the source was held out for, to choose settings by.

    An adapted run keeps what its parent was trained with, unless `adaptation` says that it was trained from scratch.
    """

    onedomain: str
    method: str
    seed: Count
    benchmark: str | None
    recipe: str = DEFAULT
    objective: str | None = None
    network: NetworkInfo
    source: SourceInfo
    environment: Environment
    started: str
    adaptation: AdaptationInfo | None = None

    @property
    def adaptations(self) -> tuple[AdaptationInfo, ...]:
        """The last one first; none for a run that was only trained."""
        return () if self.adaptation is None else tuple(self.adaptation.history())


def begin_folder(folder: Path, manifest: Manifest) -> None:
    """Make the run folder with its run.yaml."""
    make_folder(folder)
    text = yaml.safe_dump(manifest.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_atomically(folder / MANIFEST, text)


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.exists():
        raise UserError(str(folder), f"is not a run folder (it has no {MANIFEST})", "a folder made by onedomain train")
    return parse_yaml(path, read_file(path, MOST_BYTES), Manifest, ALLOWED)


def refuse_used_folder(folder: Path) -> None:
    """Never write into something that exists and holds anything."""
    if folder.exists() and not folder.is_dir():
        raise UserError("out", f"{folder} is a file", "a new or empty folder")
    if folder.is_dir() and holds_anything(folder):
        hint = "a new or empty folder"
        if (folder / MANIFEST).exists():
            hint += ", or --resume to continue this run"
        raise UserError("out", f"{folder} exists and is not empty", hint)


def warn_of_other_environment(before: Manifest, now: Manifest) -> None:
    """Going on elsewhere is fine, but only the same versions and threads give the same bits."""
    for part in ("torch", "device", "threads"):
        old, new = getattr(before.environment, part), getattr(now.environment, part)
        if old != new:
            say(f"note: resumed with {part} {new}, begun with {old}: the last bits may differ")
