"""`fit` trains a run, `load` brings one back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onedomain.components.state import check_tensors
from onedomain.data.domain import Domain
from onedomain.data.files import as_path
from onedomain.data.folders import in_use
from onedomain.data.own import as_domain
from onedomain.data.progress import say
from onedomain.errors import UserError
from onedomain.evaluation.calibration import Calibration
from onedomain.methods import method_class
from onedomain.methods.adapt import adaptation_class
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network, own_network
from onedomain.networks.named import layer_names
from onedomain.networks.pretrained import (
    NO_WEIGHTS,
    file_digest,
    load_pretrained,
    say_if_too_small,
    usual_network,
    usual_weights,
)
from onedomain.networks.weights import load_weights
from onedomain.runs.commandline import resume_command
from onedomain.runs.layout import AUXILIARY, CALIBRATION, CHECKPOINT, METRICS, WEIGHTS
from onedomain.runs.manifest import Manifest, read_manifest
from onedomain.runs.photographs import usual_settings
from onedomain.runs.recipe import Recipe, find_recipe
from onedomain.runs.rows import read_metrics
from onedomain.training.begin import (
    checked_seed,
    describe_run,
    pick_device,
    set_aside,
    set_up_to_answer,
    set_up_to_train,
    trained,
)
from onedomain.training.checkpoint import load_checkpoint
from onedomain.training.distributed import refuse_uneven
from onedomain.training.head_start import start_head
from onedomain.training.randomness import seeded
from onedomain.training.run import Run
from onedomain.training.tracking import check_tracker


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
    recipe: str | Path | Recipe | None = None,
    benchmark: str | None = None,
    usual: Mapping[str, Any] | None = None,
    held_out: Any = None,
    weights: str | Path | None = None,
    size: tuple[int, int] | None = None,
    progress: bool = True,
    track: str | None = None,
    objective: str | None = None,
    watch: Callable[[Run, int], None] = lambda run, done: None,
) -> Run:
    """Train `method` on `source` alone.

    `source` is (images, labels), a map-style torch Dataset, an image folder, a table of paths and labels, or a
    `Domain`; `size`, (height, width), is what files are brought to. `network` is any `nn.Module` classifier, whose
    layers `embedding` and `perturb` name, or the name of one of the library's (by default the paper's LeNet, a
    pretrained network for photographs, `fcn-small` for segmentation). With `out` the run is kept in a folder,
    with checkpoints, and `resume=True` resumes it. `weights` is a file to start from, such as ImageNet weights of a
    ResNet-50, or "none" for random ones; standard error names what was loaded of it.

    Photographs have a recipe of their own, for fine-tuning if there are weights to start from; settings that `method`
    was made with take precedence.

    `held_out` are further images of the source domain, never trained on: `out_of_domain` of a prediction compares with
    their scores, and the run keeps them as `held_out`. Without them, 5% of a source of 400 images or more are set aside
    for that, at most 1,000.

    `recipe` is the name of one of the method's (`onedomain methods NAME` lists them), or a file that `onedomain tune`
    wrote. Settings that `method` was given by itself, and `steps`, take precedence.

    `benchmark` is the name of the benchmark whose source this is, and `usual` the settings that it gives the method.
    Both are recorded, so that reports can name the settings that differ.

    `objective` is recorded: what a part of the source was held out for. `watch` is called after every step, with the
    run and the number of steps done.

    `track="tensorboard"` logs scalars and augmented images while training, into the run folder.
    """
    check_tracker(track, out is not None)
    method = method_class(method)() if isinstance(method, str) else method
    if not isinstance(method, Method):
        raise UserError("method", f"got a {type(method).__name__}", "a method's name, or an object such as od.ERM()")
    found = find_recipe(recipe, method.name, method.recipes)
    given = method.settings.model_dump(exclude_unset=True) | ({} if steps is None else {"steps": steps})
    seed = checked_seed(seed)
    if size is not None and not isinstance(source, (str, Path)):
        raise UserError("size", f"given for a {type(source).__name__}", "a folder, or a table of paths and labels")
    domain = as_domain(source, size=size)
    if held_out is None:
        domain, kept = set_aside(domain, seed)
    else:
        kept = as_domain(held_out, "held out", "held out", domain.classes, size=domain.image_shape[:2])
        if kept.image_shape != domain.image_shape:
            raise UserError("held_out", f"images are {kept.image_shape}", f"{domain.image_shape}, as the source")
    domain = domain.require_every_class()
    if len(domain.classes) < 2:
        raise UserError("source", f"has the one class {domain.classes[0]}", "at least two classes")
    if domain.dense and not method.dense:
        raise UserError("method", f"{method.name} needs one label per image, and this is segmentation", "another one")
    where = pick_device(device)
    folder = None if out is None else as_path(out, "out")
    with seeded(seed):
        chosen = usual_network(domain) if network is None else network
        say_if_too_small(chosen, domain.image_shape)
        named = _named(chosen, len(domain.classes), domain.image_shape, embedding, perturb)
    goes_on = folder is not None and resume and (folder / CHECKPOINT).exists()
    file, started_from = None, None
    if weights is not None:
        file = None if weights == NO_WEIGHTS else as_path(weights, "weights")
    elif folder is not None and goes_on:
        started_from = read_manifest(folder).network.weights  # the checkpoint holds what became of them
    else:
        file = usual_weights(named.module)
    here: dict[str, Any] = {}
    if usual is None and benchmark is None and isinstance(chosen, str):
        pretrained = bool(file or started_from)
        usual = here = usual_settings(method.name, domain.image_shape, len(domain), pretrained, domain.dense)
    method = type(method)(**{**here, **found.settings, **given})  # a new object: the one given may serve other runs
    if not goes_on:
        started_from = _start_from(file, named, method, domain, where, progress)
    elif file is not None:
        started_from = file_digest(file)
    refuse_uneven(method.settings.batch_size)
    with seeded(seed):  # a dataset may be random, and must look the same when the run is resumed
        set_up_to_train(method, named, domain, where, seed=seed, folder=folder)
        manifest = describe_run(method, domain, seed, benchmark, where, started_from, usual, found.name, objective)
    run = Run(method, manifest, folder=folder, held_out=kept)
    return trained(run, method, domain, kept, resume=resume, progress=progress, track=track, watch=watch)


def usual_of_own(method: str, source: Domain, network: str | None, weights: str | None) -> dict[str, Any]:
    """The settings that `fit` gives a method for images of the user's own."""
    with seeded(0):
        named = _named(network or usual_network(source), len(source.classes), source.image_shape, None, ())
    pretrained = weights != NO_WEIGHTS if weights else usual_weights(named.module) is not None
    return usual_settings(method, source.image_shape, len(source), pretrained, source.dense)


def _start_from(
    file: Path | None, named: NamedNetwork, method: Method, domain: Domain, device: torch.device, shown: bool
) -> str | None:
    """Load weights and give the head its start; what run.yaml keeps of the file."""
    if file is not None:
        say(load_pretrained(named.module, file))
    if method.settings.head_start:
        named.check_fits(domain, device, method.settings.batch_size, embedding=True)
        accuracy = start_head(named, domain, device, shown)
        say(f"frozen features: accuracy {accuracy:.1%} on the source, in cross-validation; fine-tuning goes on")
    return None if file is None else file_digest(file)


def load(
    folder: str | Path,
    *,
    network: nn.Module | None = None,
    method: type[Method] | None = None,
    device: str | torch.device | None = None,
) -> Run:
    """A run from its folder. Your own network or method class must be given again: it is not in the folder."""
    path = as_path(folder, "folder")
    manifest = read_manifest(path)
    if not (path / WEIGHTS).exists():
        if in_use(path):
            raise UserError(str(path), "is being trained at this moment", "a finished run: wait until it ends")
        raise UserError(str(path), "this run has not finished", f"a finished run: {resume_command(manifest, path)}")
    spec = manifest.network
    if spec.name is None and network is None:
        given = f"{path} was trained with your own {spec.own}"
        raise UserError("network", given, f"od.load({str(path)!r}, network=…)")
    source = manifest.source
    named = _named(
        spec.name or network, len(source.classes), source.image_shape, spec.embedding, spec.perturb, spec.config
    )
    where = pick_device(device)
    _load_into(named.module, path / WEIGHTS)
    kind = method or _class_of(manifest)
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise UserError("method", f"got {kind!r:.50}", "the class of your method")
    configured = kind(**manifest.settings)
    set_up_to_answer(configured, named, manifest, where, path)
    if configured.auxiliary is not None:
        _load_into(configured.auxiliary, path / AUXILIARY)
    history = read_metrics(path / METRICS)
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
    weights = load_weights(path)
    try:
        check_tensors(module.state_dict(), weights, "it")
    except ValueError as error:
        raise UserError(str(path), f"does not fit the network ({error!s:.200})") from None
    module.load_state_dict(weights)


def _named(
    network: Any,
    classes: int,
    image_shape: tuple[int, int, int],
    embedding: str | None,
    perturb: Sequence[str],
    config: Mapping[str, Any] | None = None,
) -> NamedNetwork:
    """One of the library's networks, by its name, or the user's own; the layers that are given take precedence."""
    if not isinstance(network, str):
        return own_network(network, embedding, perturb)
    named = build_network(network, classes, image_shape, config)
    layers = layer_names(perturb)
    return replace(named, embedding=embedding or named.embedding, perturb=layers or named.perturb)
