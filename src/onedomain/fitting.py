"""`fit` trains a run, `load` brings one back."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onedomain.checkpoint import load_weights, save_weights
from onedomain.data.domain import Domain
from onedomain.data.own import as_domain
from onedomain.errors import UserError
from onedomain.files import read_json_lines, remove_leftovers
from onedomain.manifest import (
    MANIFEST,
    begin_folder,
    describe_run,
    read_manifest,
    refuse_changes,
    refuse_used_folder,
    warn_of_other_environment,
)
from onedomain.methods import method_class
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network, own_network
from onedomain.run import WEIGHTS, Run
from onedomain.training import METRICS, private_randomness, seed_everything, train


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
    progress: bool = True,
) -> Run:
    """Train `method` on `source` alone.

    `source` is (images, labels), a map-style torch Dataset, an image folder or a `Domain`; `network` any
    `nn.Module` classifier (the paper's LeNet by default), whose layers `embedding` and `perturb` name.
    With `out` the run is kept in a folder, with checkpoints, and `resume=True` goes on from there.
    """
    method = method_class(method)() if isinstance(method, str) else method
    if not isinstance(method, Method):
        raise UserError("method", f"got a {type(method).__name__}", "a method's name, or an object such as od.ERM()")
    # A new object: the one given may be used for other runs, before and after.
    method = type(method)(**{**method.settings.model_dump(), **({} if steps is None else {"steps": steps})})
    seed = _checked_seed(seed)
    domain = as_domain(source).require_every_class()
    if len(domain.classes) < 2:
        raise UserError("source", f"has the one class {domain.classes[0]}", "at least two classes")
    where = pick_device(device)
    with private_randomness():
        seed_everything(seed, step=-1)
        named = _network_for(domain, network, embedding, perturb)
    folder = None if out is None else Path(out)
    method.attach(named, where, seed, folder)
    with private_randomness():
        seed_everything(seed, step=-1)  # a dataset may be random, and must look the same when the run is resumed
        named.check_fits(domain, where, method.settings.batch_size, method.needs_embedding)
        manifest = describe_run(method, domain, seed, benchmark, where)
    if folder is not None:
        if resume and (folder / MANIFEST).exists():
            before = read_manifest(folder)
            remove_leftovers(folder)
            refuse_changes(before, manifest)
            warn_of_other_environment(before, manifest)
            manifest = before
        else:
            refuse_used_folder(folder)
            begin_folder(folder, manifest)
    history, seconds = train(method, domain, seed=seed, folder=folder, shown=progress)
    if folder is not None:
        save_weights(folder / WEIGHTS, named.module.state_dict())
    return Run(method, manifest, history, seconds, folder)


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
        raise UserError(str(path), "this run has not finished", "a finished run; go on with onedomain train --resume")
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
    try:
        named.module.load_state_dict(load_weights(path / WEIGHTS))
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(str(path / WEIGHTS), f"does not fit the network ({reason})") from None
    configured = (method or method_class(manifest.method))(**manifest.settings)
    configured.attach(named, where, manifest.seed, path)
    history = read_json_lines(path / METRICS, "step")
    return Run(configured, manifest, history, max((row.get("seconds", 0.0) for row in history), default=0.0), path)


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the fastest one there is."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        raise UserError(
            "device", f"{str(device)!r} is not there", "cpu, cuda, cuda:0, mps as this machine has"
        ) from None
    return chosen


def _checked_seed(seed: int) -> int:
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
        if domain.dense and network is None:
            raise UserError("network", "the labels are dense, and no network is given", "a network with dense outputs")
        named = build_network(network or "lenet", len(domain.classes), domain.image_shape)
        layers = (perturb,) if isinstance(perturb, str) else tuple(perturb)
        return replace(named, embedding=embedding or named.embedding, perturb=layers or named.perturb)
    return own_network(network, embedding, perturb)
