"""run.yaml: what a run is, and whether a folder may be used for it."""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from onedomain._version import __version__
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.files import TEMPORARY, make_folder, remove_leftovers, write_atomically
from onedomain.methods.base import Method

MANIFEST = "run.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NetworkInfo(_Strict):
    """A network of the library's, by `name`; or the class of the user's `own`, of which only weights are kept."""

    name: str | None = None
    own: str | None = None
    embedding: str | None
    perturb: tuple[str, ...]


class SourceInfo(_Strict):
    """The source domain: what must be equal to go on with a run, and what its model expects of images."""

    name: str
    split: str
    count: int
    image_shape: tuple[int, int, int]  # height, width, channels
    value_range: tuple[float, float]
    classes: tuple[str, ...]
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


class Manifest(_Strict):
    """run.yaml: all that decides a run's result, and what it was made with."""

    onedomain: str
    method: str
    settings: dict[str, Any]
    seed: int
    benchmark: str | None
    network: NetworkInfo
    source: SourceInfo
    environment: Environment
    started: str


def describe_run(method: Method, domain: Domain, seed: int, benchmark: str | None, device: torch.device) -> Manifest:
    named = method.network
    return Manifest(
        onedomain=__version__,
        method=method.name,
        settings=method.settings.model_dump(mode="json"),
        seed=seed,
        benchmark=benchmark,
        network=NetworkInfo(name=named.name, own=named.own, embedding=named.embedding, perturb=named.perturb),
        source=SourceInfo(
            name=domain.name,
            split=domain.split,
            count=len(domain),
            image_shape=domain.image_shape,
            value_range=domain.value_range,
            classes=domain.classes,
            dense=domain.dense,
            void=domain.void,
            fingerprint=domain.fingerprint,
        ),
        environment=Environment(
            python=platform.python_version(),
            torch=str(torch.__version__),
            numpy=np.__version__,
            platform=platform.platform(),
            device=str(device),
            threads=torch.get_num_threads(),
        ),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def begin_folder(folder: Path, manifest: Manifest) -> None:
    """Make the run folder with its run.yaml; if that fails, nothing of it stays."""
    new = not folder.exists()
    make_folder(folder)
    remove_leftovers(folder)
    try:
        text = yaml.safe_dump(manifest.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        write_atomically(folder / MANIFEST, text)
    except UserError:
        if new:
            folder.rmdir()
        raise


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise UserError(str(folder), f"is not a run folder (it has no {MANIFEST})", "a folder made by onedomain train")
    try:
        return Manifest(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError, TypeError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(str(path), f"cannot be understood ({reason})", "a file written by onedomain") from None


def refuse_used_folder(folder: Path) -> None:
    """Never write into something that exists and holds anything."""
    if folder.exists() and not folder.is_dir():
        raise UserError("out", f"{folder} is a file", "a new or empty folder")
    if folder.is_dir() and any(not entry.name.startswith(TEMPORARY) for entry in folder.iterdir()):
        hint = "a new or empty folder"
        if (folder / MANIFEST).exists():
            hint += ", or --resume to go on with this run"
        raise UserError("out", f"{folder} exists and is not empty", hint)


def refuse_changes(before: Manifest, now: Manifest, defaults: Mapping[str, Any]) -> None:
    """A resumed run must be the same run: same method, settings, seed, network and data.

    `defaults` are those of the settings: what they were where a setting is newer than the run.
    """
    before = before.model_copy(update={"settings": {**defaults, **before.settings}})
    for part in ("method", "seed", "benchmark", "network", "source", "settings"):
        old, new = getattr(before, part), getattr(now, part)
        if old == new:
            continue
        if isinstance(old, BaseModel):
            old, new = old.model_dump(), new.model_dump()
        if isinstance(old, dict) and isinstance(new, dict):
            part = next(key for key in {**old, **new} if old.get(key) != new.get(key))
            old, new = old.get(part), new.get(part)
        raise UserError(part, f"is {new!r} now, and was {old!r}", f"{old!r} to resume, or another --out")


def warn_of_other_environment(before: Manifest, now: Manifest) -> None:
    """Going on elsewhere is fine, but only the same versions and threads give the same bits."""
    for part in ("torch", "device", "threads"):
        old, new = getattr(before.environment, part), getattr(now.environment, part)
        if old != new:
            print(
                f"note: resumed with {part} {new}, begun with {old}: the last bits may differ",
                file=sys.stderr,
            )
