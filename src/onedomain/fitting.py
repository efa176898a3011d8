"""`fit` trains a run, `load` brings one back."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from onedomain.adaptation import adaptation_class
from onedomain.checkpoint import load_checkpoint, load_weights
from onedomain.data.domain import Domain
from onedomain.data.own import as_domain, renamed
from onedomain.errors import UserError
from onedomain.files import read_json_lines, remove_leftovers
from onedomain.manifest import (
    MANIFEST,
    Manifest,
    begin_folder,
    describe_run,
    read_manifest,
    refuse_changes,
    refuse_used_folder,
    resume_command,
    warn_of_other_environment,
)
from onedomain.memory import images_at_once
from onedomain.methods import method_class
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network, own_network
from onedomain.networks.pretrained import file_digest, load_pretrained
from onedomain.randomness import private_randomness, seed_everything
from onedomain.run import AUXILIARY, CALIBRATION, WEIGHTS, Run
from onedomain.tracking import check_tracker
from onedomain.training import CHECKPOINT, METRICS, train
from onedomain.uncertainty import MOST_IMAGES, Calibration, Predictive, calibrate

SET_ASIDE = 0.05  # share of the source that is held out when no held-out images are given
FEWEST_TO_SET_ASIDE, MOST_SET_ASIDE = 400, 1000  # at least 20 images: the 95% quantile of fewer is their maximum


def fit(
    method: str | Method,
    source: Any,
    *,
    network: str | nn.Module | None = None,
    embedding: str | None = None,
    perturb: Sequence[str] = (),
    steps: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    benchmark: str | None = None,
    held_out: Any = None,
    weights: str | Path | None = None,
    progress: bool = True,
    track: str | None = None,
) -> Run:
    """Train `method` on `source` alone.

    `source` is (images, labels), a map-style torch Dataset, an image folder or a `Domain`; `network` any
    `nn.Module` classifier, whose layers `embedding` and `perturb` name, or the name of one of the library's (by default
    the paper's LeNet, and `fcn-small` where pixels have labels). With `out` the run is kept in a folder, with
    checkpoints, and `resume=True` goes on from there. `weights` is a file to start from, such as ImageNet weights of a
    ResNet-50: what was loaded of it is said on standard error.

    `held_out` are further images of the source domain: never trained on, they tell how the source scores that
    training has not seen, so that `out_of_domain` of a prediction means something. Without them 5% of the source (of
    400 images or more, at most 1,000 of them) are set aside for that.

    `track="tensorboard"` logs scalars and augmented images while training, into the run folder.
    """
    check_tracker(track, out is not None)
    method = method_class(method)() if isinstance(method, str) else method
    if not isinstance(method, Method):
        raise UserError("method", f"got a {type(method).__name__}", "a method's name, or an object such as od.ERM()")
    # A new object: the one given may be used for other runs, before and after.
    method = type(method)(**{**method.settings.model_dump(), **({} if steps is None else {"steps": steps})})
    seed = checked_seed(seed)
    domain = as_domain(source)
    if held_out is None:
        domain, kept = set_aside(domain, seed)
    else:
        kept = renamed(as_domain(held_out, "held out", "held out", domain.classes), "held out")
        if kept.image_shape != domain.image_shape:
            raise UserError("held_out", f"images are {kept.image_shape}", f"{domain.image_shape}, as the source")
    domain = domain.require_every_class()
    if len(domain.classes) < 2:
        raise UserError("source", f"has the one class {domain.classes[0]}", "at least two classes")
    if domain.dense and not method.dense:
        raise UserError("method", f"{method.name} needs one label an image, and here pixels have labels", "another one")
    where = pick_device(device)
    with private_randomness():
        seed_everything(seed, step=-1)
        named = _network_for(domain, network, embedding, perturb)
    folder = None if out is None else Path(out)
    started_from = None
    if weights is not None:
        print(load_pretrained(named.module, weights), file=sys.stderr)
        started_from = file_digest(weights)
    elif folder is not None and resume and (folder / CHECKPOINT).exists():
        started_from = read_manifest(folder).network.weights  # the checkpoint holds what became of them
    method.attach(named, where, seed, folder)
    with private_randomness():
        seed_everything(seed, step=-1)  # a dataset may be random, and must look the same when the run is resumed
        named.check_fits(domain, where, method.settings.batch_size, method.needs_embedding)
        method.build(blank(domain.image_shape, where))
        manifest = describe_run(method, domain, seed, benchmark, where, started_from)
    if folder is not None:
        manifest = begin_or_resume(folder, method, manifest, resume)
    history, seconds = train(method, domain, seed=seed, folder=folder, shown=progress, track=track)
    run = Run(method, manifest, history, seconds, folder, calibrated(method, domain, kept))
    if folder is not None:
        run.save_model(folder)
    return run


def begin_or_resume(
    folder: Path, method: Method, manifest: Manifest, resume: bool, adaptation: Method | None = None
) -> Manifest:
    """Make a new run folder, or check that the one there is of this very run; what it says then.

    `method` is that of the manifest, `adaptation` what adapts it.
    """
    if not (resume and (folder / MANIFEST).exists()):
        refuse_used_folder(folder)
        begin_folder(folder, manifest)
        return manifest
    before = read_manifest(folder)
    remove_leftovers(folder)
    refuse_changes(before, manifest, _defaults(method), {} if adaptation is None else _defaults(adaptation))
    warn_of_other_environment(before, manifest)
    return before


def _defaults(method: Method) -> dict[str, Any]:
    return type(method.settings).model_construct().model_dump(mode="json")


def set_aside(domain: Domain, seed: int) -> tuple[Domain, Domain | None]:
    """The source without some of its images, chosen by seed, and these: to calibrate on, never to train on."""
    count = min(MOST_SET_ASIDE, int(SET_ASIDE * len(domain)))
    if len(domain) < FEWEST_TO_SET_ASIDE:
        return domain, None
    order = np.random.default_rng([seed, len(domain)]).permutation(len(domain))
    kept, trained = np.sort(order[:count]), np.sort(order[count:])
    if not domain.dense and len(np.unique(domain.labels[trained])) < len(np.unique(domain.labels[order])):
        return domain, None  # every image of a rare class is needed to learn it
    return domain.subset(trained), domain.subset(kept, "held out")


def calibrated(method: Method, source: Domain, held_out: Domain | None) -> Calibration:
    """How the source scores with this network: what `out_of_domain` of its predictions rests on."""

    def said(domain: Domain) -> Iterator[Predictive]:
        # From all over the domain: folders are sorted by class.
        some = np.linspace(0, len(domain) - 1, min(len(domain), MOST_IMAGES)).astype(np.int64)
        height, width, _ = domain.image_shape
        classes = len(domain.classes) if domain.dense else 1
        size = images_at_once(height, width, min(250, 4 * method.settings.batch_size), classes=classes)
        for start in range(0, len(some), size):
            images = domain.batch(some[start : start + size], method.device).images
            yield method.predictive(images, draws=0)

    with private_randomness():
        seed_everything(method.seed, step=-1)  # a dataset may be random
        return calibrate(said(source), said(held_out or source), held_out is not None)


def blank(image_shape: tuple[int, int, int], device: torch.device) -> torch.Tensor:
    """Some images of a shape, always the same: to see what a network makes of it."""
    height, width, channels = image_shape
    noise = torch.rand(3, channels, height, width, generator=torch.Generator().manual_seed(0))
    return noise.to(device).contiguous(memory_format=torch.channels_last)


def load(
    folder: str | Path,
    *,
    network: nn.Module | None = None,
    method: type[Method] | None = None,
    device: str | torch.device | None = None,
) -> Run:
    """A run from its folder. A network, or method class, of one's own must be given again: it is not in the folder."""
    path = Path(folder)
    manifest = read_manifest(path)
    if not (path / WEIGHTS).exists():
        raise UserError(str(path), "this run has not finished", f"a finished run: {resume_command(manifest, path)}")
    spec = manifest.network
    if spec.name is None:
        if network is None:
            given = f"{path} was trained with your own {spec.own}"
            raise UserError("network", given, f"od.load({str(path)!r}, network=…)")
        named = own_network(network, spec.embedding, spec.perturb)
    else:
        named = build_network(spec.name, len(manifest.source.classes), manifest.source.image_shape)
        named = replace(named, embedding=spec.embedding, perturb=spec.perturb)
    where = pick_device(device)
    _load_into(named.module, path / WEIGHTS)
    configured = (method or _class_of(manifest))(**manifest.settings)
    configured.attach(named, where, manifest.seed, path)
    with private_randomness():
        configured.build(blank(manifest.source.image_shape, where))
    if configured.auxiliary is not None:
        _load_into(configured.auxiliary, path / AUXILIARY)
    history = read_json_lines(path / METRICS, "step")
    seconds = max((row.get("seconds", 0.0) for row in history), default=0.0)
    calibration = None
    if (path / CALIBRATION).exists():
        calibration = Calibration.from_state(load_checkpoint(path / CALIBRATION, where))
    return Run(configured, manifest, history, seconds, path, calibration)


def _class_of(manifest: Manifest) -> type[Method]:
    """The method whose network answers: what the run was trained with, unless an adaptation started from scratch."""
    for info in manifest.adaptations:
        if info.from_scratch:
            return adaptation_class(info.method)
    return method_class(manifest.method)


def _load_into(module: nn.Module, path: Path) -> None:
    try:
        module.load_state_dict(load_weights(path))
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(str(path), f"does not fit the network ({reason})") from None


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


def _network_for(
    domain: Domain, network: str | nn.Module | None, embedding: str | None, perturb: Sequence[str]
) -> NamedNetwork:
    if network is None or isinstance(network, str):
        default = "fcn-small" if domain.dense else "lenet"
        named = build_network(network or default, len(domain.classes), domain.image_shape)
        layers = (perturb,) if isinstance(perturb, str) else tuple(perturb)
        return replace(named, embedding=embedding or named.embedding, perturb=layers or named.perturb)
    return own_network(network, embedding, perturb)
