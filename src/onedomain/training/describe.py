"""The run.yaml of a new run: its settings, data and environment."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from onedomain._version import __version__
from onedomain.data.domain import Domain
from onedomain.methods.base import Method
from onedomain.runs.manifest import AdaptationInfo, Environment, Manifest, NetworkInfo, SourceInfo


def describe_run(
    method: Method,
    domain: Domain,
    seed: int,
    benchmark: str | None,
    device: torch.device,
    weights: str | None = None,
    recipe: Mapping[str, Any] | None = None,
) -> Manifest:
    """`recipe` holds the benchmark's settings for the method, where they are not its defaults."""
    named = method.network
    return Manifest(
        onedomain=__version__,
        method=method.name,
        settings=method.settings.model_dump(mode="json"),
        usually=set_otherwise(method, recipe or {}),
        seed=seed,
        benchmark=benchmark,
        network=NetworkInfo(
            name=named.name,
            own=named.own,
            embedding=named.embedding,
            perturb=named.perturb,
            weights=weights,
            config=named.config,
        ),
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
        **_made_with(device),
    )


def set_otherwise(method: Method, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's values of the settings that were changed."""
    usual = type(method)(**recipe).settings.model_dump(mode="json")
    settings = method.settings.model_dump(mode="json")
    return {name: value for name, value in usual.items() if settings[name] != value}


def describe_adapted(parent: Manifest, adaptation: AdaptationInfo, device: torch.device) -> Manifest:
    """The manifest of an adapted run: its parent's, or, trained from scratch, one of its own on the same source."""
    changed = {"onedomain": __version__, "adaptation": adaptation, **_made_with(device)}
    if adaptation.from_scratch:
        network = parent.network.model_copy(update={"weights": None})  # nothing of them is left
        trained = {"settings": adaptation.settings, "usually": adaptation.usually}
        changed |= {"method": adaptation.method, "network": network, **trained}
    return parent.model_copy(update=changed)


def _made_with(device: torch.device) -> dict[str, Any]:
    environment = Environment(
        python=platform.python_version(),
        torch=str(torch.__version__),
        numpy=np.__version__,
        platform=platform.platform(),
        device=str(device),
        threads=torch.get_num_threads(),
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"environment": environment, "started": now.isoformat(timespec="seconds")}
