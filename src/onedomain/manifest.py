"""run.yaml: what a run is, and whether a folder may be used for it."""

from __future__ import annotations

import datetime
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from onedomain._version import __version__
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.files import write_atomically
from onedomain.methods.base import Method

MANIFEST = "run.yaml"


class Manifest(BaseModel):
    """run.yaml: all that decides a run's result, and what it was made with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    onedomain: str
    method: str
    settings: dict[str, Any]
    seed: int
    benchmark: str | None
    network: dict[str, Any]
    source: dict[str, Any]
    environment: dict[str, Any]
    started: str


def describe_run(method: Method, domain: Domain, seed: int, benchmark: str | None, device: torch.device) -> Manifest:
    named = method.network
    return Manifest(
        onedomain=__version__,
        method=method.name,
        settings=method.settings.model_dump(mode="json"),
        seed=seed,
        benchmark=benchmark,
        network={**named.spec, "embedding": named.embedding, "perturb": list(named.perturb)},
        source={
            "name": domain.name,
            "split": domain.split,
            "count": len(domain),
            "image_shape": list(domain.image_shape),
            "classes": list(domain.classes),
            "dense": domain.dense,
            "void": domain.void,
            "fingerprint": domain.fingerprint,
        },
        environment={
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "platform": platform.platform(),
            "device": str(device),
            "threads": torch.get_num_threads(),
        },
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    text = yaml.safe_dump(manifest.model_dump(), sort_keys=False, allow_unicode=True)
    write_atomically(folder / MANIFEST, text)


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
    if folder.is_dir() and any(folder.iterdir()):
        hint = "a new or empty folder"
        if (folder / MANIFEST).exists():
            hint += ", or --resume to go on with this run"
        raise UserError("out", f"{folder} exists and is not empty", hint)


def refuse_changes(before: Manifest, now: Manifest) -> None:
    """A resumed run must be the same run: same method, settings, seed, network and data."""
    for part in ("method", "seed", "benchmark", "network", "source", "settings"):
        old, new = getattr(before, part), getattr(now, part)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            part = next(key for key in {**old, **new} if old.get(key) != new.get(key))
            old, new = old.get(part), new.get(part)
        raise UserError(part, f"is {new!r} now, and was {old!r}", f"{old!r} to resume, or another --out")


def warn_of_other_environment(before: Manifest, now: Manifest) -> None:
    """Going on elsewhere is fine, but only the same versions and threads give the same bits."""
    for part in ("torch", "device", "threads"):
        old, new = before.environment.get(part), now.environment[part]
        if old != new:
            print(
                f"note: resumed with {part} {new}, begun with {old}: the last bits may differ",
                file=sys.stderr,
            )
