"""What `fit` and `adapt` share: one way to set a method up, to train it, to describe and to keep the run."""

from __future__ import annotations

import datetime
import operator
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from onedomain._version import __version__
from onedomain.components.predictive import Predictive
from onedomain.data.domain import Domain
from onedomain.data.folders import sole_use
from onedomain.errors import UserError
from onedomain.evaluation.calibration import MOST_IMAGES, Calibration, calibrate
from onedomain.evaluation.scores import batches_in_order
from onedomain.methods.base import Method, Setup
from onedomain.networks import NamedNetwork
from onedomain.networks.distributed import place, processes, wait
from onedomain.runs.identity import refuse_changes
from onedomain.runs.layout import MANIFEST
from onedomain.runs.manifest import (
    AdaptationInfo,
    Environment,
    Manifest,
    NetworkInfo,
    SourceInfo,
    begin_folder,
    read_manifest,
    refuse_used_folder,
    warn_of_other_environment,
)
from onedomain.runs.recipe import DEFAULT
from onedomain.training.loop import train
from onedomain.training.randomness import private_randomness, seeded

if TYPE_CHECKING:
    from onedomain.training.run import Run

SET_ASIDE = 0.05  # share of the source that is held out when no held-out images are given
FEWEST_TO_SET_ASIDE, MOST_SET_ASIDE = 400, 1000  # at least 20 images: the 95% quantile of fewer is their maximum


def set_up_to_train(
    method: Method,
    network: NamedNetwork,
    source: Domain,
    device: torch.device,
    *,
    seed: int,
    folder: Path | None,
    shots: Domain | None = None,
) -> None:
    """Refuse a network that does not suit the data, before anything is written; else give all to the method."""
    network.check_fits(source, device, method.settings.batch_size, method.needs_embedding)
    images = blank(source.image_shape, device)
    method.set_up(Setup(network, images, device, source, shots, seed=seed, folder=folder))


def set_up_to_answer(
    method: Method, network: NamedNetwork, manifest: Manifest, device: torch.device, folder: Path | None
) -> None:
    """Put a method around a network that is trained already; nothing of the source is needed."""
    with private_randomness():
        images = blank(manifest.source.image_shape, device)
        method.set_up(Setup(network, images, device, seed=manifest.seed, folder=folder))


def trained(
    run: Run,
    trainer: Method,
    source: Domain | None,
    held_out: Domain | None,
    *,
    resume: bool,
    progress: bool,
    track: str | None = None,
    watch: Callable[[Run, int], None] = lambda run, done: None,
) -> Run:
    """`run` when `trainer` has trained its network: the folder begun or resumed, and in it all that the run needs.

    `source` and `held_out` are what it is calibrated on; without `source` it has no calibration. Of several processes
    the first one writes to the folder.
    """
    wait()  # none shall see what the first one begins
    writes = run.folder is not None and place() == 0
    if run.folder is not None and writes and not (resume and (run.folder / MANIFEST).exists()):
        refuse_used_folder(run.folder)
    with sole_use(run.folder) if run.folder is not None and writes else nullcontext():
        manifest = begin_or_resume(run.folder, run.manifest, resume) if run.folder and writes else run.manifest
        wait()
        if run.folder is not None and not (run.folder / MANIFEST).exists():
            raise UserError("out", f"{run.folder} is not seen by process {place()}", "a folder that all of them share")
        history, seconds = train(trainer, shown=progress, track=track, watch=partial(watch, run))
        calibration = None if source is None else calibrated(run.method, source, held_out)
        run = replace(run, manifest=manifest, history=history, seconds=seconds, calibration=calibration)
        if run.folder is not None and writes:
            run.save_model(run.folder)
        wait()
    return run


def begin_or_resume(folder: Path, manifest: Manifest, resume: bool) -> Manifest:
    """Make a new run folder, or check that the existing one is of this very run; returns the manifest that holds."""
    if not (resume and (folder / MANIFEST).exists()):
        refuse_used_folder(folder)
        begin_folder(folder, manifest)
        return manifest
    before = read_manifest(folder)
    refuse_changes(before, manifest)
    warn_of_other_environment(before, manifest)
    return before


def set_aside(domain: Domain, seed: int) -> tuple[Domain, Domain | None]:
    """Split the source by seed: images to train on, and images to calibrate on, None if there are too few."""
    count = min(MOST_SET_ASIDE, int(SET_ASIDE * len(domain)))
    if len(domain) < FEWEST_TO_SET_ASIDE:
        return domain, None
    order = np.random.default_rng([seed, len(domain)]).permutation(len(domain))
    kept, others = np.sort(order[:count]), np.sort(order[count:])
    if not domain.dense and len(np.unique(domain.labels[others])) < len(np.unique(domain.labels[order])):
        return domain, None  # every image of a rare class is needed to learn it
    return domain.subset(others), domain.subset(kept, "held out")


def calibrated(method: Method, source: Domain, held_out: Domain | None) -> Calibration:
    """The scores of the source with this network, which `out_of_domain` of a prediction compares with."""

    def said(domain: Domain) -> Iterator[Predictive]:
        # From all over the domain: folders are sorted by class.
        some = np.linspace(0, len(domain) - 1, min(len(domain), MOST_IMAGES)).astype(np.int64)
        at_once = min(250, 4 * method.settings.batch_size)
        for batch in batches_in_order(domain.subset(some), at_once, method.device):
            yield Predictive.in_shares(partial(method.predictive, draws=0), batch.images)

    with seeded(method.seed):  # a dataset may be random
        return calibrate(said(source), said(held_out or source), held_out is not None)


def blank(image_shape: tuple[int, int, int], device: torch.device) -> torch.Tensor:
    """Some images of a shape, always the same: to try a network on."""
    height, width, channels = image_shape
    noise = torch.rand(3, channels, height, width, generator=torch.Generator().manual_seed(0))
    return noise.to(device).contiguous(memory_format=torch.channels_last)


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the fastest one there is."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, TypeError):
        # As torch raises them: a name that it cannot use, a device that it was built without, no text at all.
        raise UserError(
            "device", f"{str(device)!r} is not there", "cpu, cuda, cuda:0, mps as this machine has"
        ) from None
    return chosen


def checked_seed(seed: int) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**32:
        raise UserError("seed", f"got {seed!r}", "a whole number from 0 to 4294967295")
    return number


def describe_run(
    method: Method,
    domain: Domain,
    seed: int,
    benchmark: str | None,
    device: torch.device,
    weights: str | None = None,
    usual: Mapping[str, Any] | None = None,
    recipe: str = DEFAULT,
    objective: str | None = None,
) -> Manifest:
    """`usual` holds the benchmark's settings for the method, where they are not its defaults."""
    if not isinstance(benchmark, str | None):
        raise UserError("benchmark", f"got {benchmark!r:.50}", "the name of a benchmark")
    named = method.network
    return Manifest(
        onedomain=__version__,
        method=method.name,
        settings=method.settings.model_dump(mode="json"),
        usually=set_otherwise(method, usual or {}),
        seed=seed,
        benchmark=benchmark,
        recipe=recipe,
        objective=objective,
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


def set_otherwise(method: Method, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The usual values of the settings that were changed."""
    values = type(method)(**usual).settings.model_dump(mode="json")
    settings = method.settings.model_dump(mode="json")
    return {name: value for name, value in values.items() if settings[name] != value}


def describe_adapted(parent: Manifest, adaptation: AdaptationInfo, device: torch.device) -> Manifest:
    """The manifest of an adapted run: its parent's, or, trained from scratch, one of its own on the same source."""
    changed = {"onedomain": __version__, "adaptation": adaptation, **_made_with(device)}
    if adaptation.from_scratch:
        network = parent.network.model_copy(update={"weights": None})  # nothing of them is left
        trained = {"settings": adaptation.settings, "usually": adaptation.usually, "recipe": DEFAULT}
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
        processes=processes(),
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"environment": environment, "started": now.isoformat(timespec="seconds")}
