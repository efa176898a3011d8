"""Adapt a run to a target: draw, train, score before and after, and keep all of it in a run folder of its own."""

from __future__ import annotations

import copy
import hashlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from onedomain.data.domain import Domain
from onedomain.data.files import as_path
from onedomain.data.folders import sole_use
from onedomain.data.own import as_domain, renamed
from onedomain.errors import UserError
from onedomain.evaluation.scores import Evaluation
from onedomain.methods.adapt import adaptation_class
from onedomain.methods.adapt.base import Adaptation
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network
from onedomain.networks.distributed import processes
from onedomain.runs.layout import MANIFEST
from onedomain.runs.manifest import AdaptationInfo, refuse_used_folder
from onedomain.training.adapted import Adapted, before_and_after
from onedomain.training.begin import (
    checked_seed,
    describe_adapted,
    set_aside,
    set_otherwise,
    set_up_to_answer,
    set_up_to_train,
    trained,
)
from onedomain.training.randomness import private_randomness, seed_everything, seeded
from onedomain.training.shots import draw, left_over, missing_classes, refuse_test_images

if TYPE_CHECKING:
    from onedomain.training.run import Run

MOST_DRAWS = 1000  # all are drawn before the first is trained on


class Known(NamedTuple):
    """What is at hand of the source: images that the run was trained on, to score, and to calibrate on."""

    source: Domain | None = None
    held_out: Domain | None = None
    calibration: Domain | None = None


class Plan(NamedTuple):
    """One draw, checked before anything is trained or written."""

    shots: Domain
    test: Domain | None
    info: AdaptationInfo
    folder: Path | None


def adapt(
    run: Run,
    target: Any,
    shots: int,
    *,
    method: str | Adaptation = "fine-tune",
    test: Any = None,
    source: Any = None,
    held_out: Any = None,
    calibration: Domain | None = None,
    name: str | None = None,
    benchmark: str | None = None,
    seed: int = 0,
    seeds: int = 1,
    steps: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Adapted:
    """Adapt copies of a run to a new domain by a few labelled images of it; the run stays as it is.

    Of each class `shots` images are drawn from `target` (for segmentation that many in all), once for each of `seeds`
    draws, the first by `seed`. `test` is what is scored before and after; without it, what was not drawn. `source` and
    `held_out`, as given to `fit`, measure what is forgotten; `fada` and `ccsa` train on `source`, too. With `out` the
    adapted run is kept in a folder, several in folders `draw-0`, `draw-1`, … inside it, and `resume=True` resumes it.

    `benchmark` is whose target it is, and `calibration` what `out_of_domain` rests on, where the benchmark keeps other
    source images for that than those it scores.
    """
    if processes() > 1:
        raise UserError("adapt", f"called by {processes()} processes", "one")
    out = None if out is None else as_path(out, "out")
    chosen = _configured(run, method, steps)
    pool = run.as_domain(target, name or (target.name if isinstance(target, Domain) else "target"), "train")
    if pool.dense != run.manifest.source.dense:
        kind = "pixels" if run.manifest.source.dense else "images"
        raise UserError(
            pool.name, f"labels {'pixels' if pool.dense else 'images'}", f"labels of {kind}, as in training"
        )
    known = _known(run, source, held_out, calibration)
    if chosen.from_scratch and known.source is None:
        raise UserError(
            "source", f"not given, and {chosen.name} trains on source and target", "the run's training data"
        )
    if pool.name == run.manifest.source.name:
        raise UserError("target", f"{pool.name!r} is the name of what the run was trained on", "another domain")
    judged = None if test is None else run.as_domain(test, pool.name, "test")
    with private_randomness():
        plans = _plans(run, chosen, pool, judged, shots, benchmark, seed, seeds, out)
    for plan in plans:
        if plan.folder is not None and not (resume and (plan.folder / MANIFEST).exists()):
            refuse_used_folder(plan.folder)

    draws, done = [], dict[tuple[str, str], Evaluation]()
    source_name = run.manifest.source.name
    benchmarks = {pool.name: benchmark, source_name: run.manifest.benchmark}
    with nullcontext() if out is None or seeds == 1 else sole_use(Path(out), deep=False):
        for plan in plans:
            adapted = _adapted(run, chosen, plan, known, resume, progress)
            domains = {pool.name: plan.test, source_name: known.held_out}
            draws.append(before_and_after(run, adapted, domains, benchmarks, done, progress))
    scored = None if known.held_out is None else source_name
    return Adapted(pool.name, scored, tuple(draws), tuple(_notes(run, pool, plans, known)))


def _configured(run: Run, method: str | Adaptation, steps: int | None) -> Adaptation:
    chosen = adaptation_class(method)() if isinstance(method, str) else method
    if not isinstance(chosen, Adaptation):
        raise UserError(
            "method", f"got a {type(chosen).__name__}", "the name of an adaptation, or an Adaptation object"
        )
    if steps is not None:
        chosen = type(chosen)(**{**chosen.settings.model_dump(), "steps": steps})
    if run.manifest.source.dense and not chosen.dense:
        raise UserError("method", f"{chosen.name} pairs images of one class, and this is segmentation", "fine-tune")
    if not chosen.from_scratch and len(run.method.answering) > 1:
        given = f"the run is an ensemble of {len(run.method.answering)} networks"
        raise UserError("method", f"{given}, and {chosen.name} adapts one", "fada, ccsa, or a run of a single network")
    return chosen


def _known(run: Run, source: Any, held_out: Any, calibration: Domain | None) -> Known:
    """The source as it was given to `fit`: whole, or without the part that `fit` sets aside to calibrate on."""
    held = None if held_out is None else run.as_domain(held_out, run.manifest.source.name, "held out")
    if source is None:
        return Known(None, held, calibration or held)
    whole = renamed(as_domain(source, classes=run.classes), run.manifest.source.name)
    trained_on, kept = whole, None
    if trained_on.fingerprint != run.manifest.source.fingerprint:
        trained_on, kept = set_aside(whole, run.manifest.seed)
    if trained_on.fingerprint != run.manifest.source.fingerprint:
        given = f"other images than the {run.manifest.source.count:,} that the run was trained on"
        raise UserError("source", given, "the same data as for training, in the same order")
    held = held or kept
    return Known(trained_on, held, calibration or held)


def _plans(
    run: Run,
    chosen: Adaptation,
    pool: Domain,
    test: Domain | None,
    shots: int,
    benchmark: str | None,
    seed: int,
    seeds: int,
    out: str | Path | None,
) -> list[Plan]:
    if not isinstance(seeds, (int, np.integer)) or not 1 <= seeds <= MOST_DRAWS:
        raise UserError("seeds", f"got {seeds!r}", f"a whole number of draws from 1 to {MOST_DRAWS}")
    parent_weights = weights_fingerprint(run.network.module)
    test_images = None if test is None else set(test.image_fingerprints())
    plans = []
    for number in range(checked_seed(seed), checked_seed(seed + seeds - 1) + 1):
        seed_everything(number, step=-1)  # a dataset may be random
        places = draw(pool, shots, number)
        drawn = pool.subset(places, "shots")
        images = drawn.image_fingerprints()
        if test_images is not None:
            refuse_test_images(pool.name, images, test_images)
        judged = left_over(pool, places, images) if test is None else test
        planned = type(chosen)(**chosen.planned(len(drawn)))
        info = AdaptationInfo(
            method=chosen.name,
            settings=planned.settings.model_dump(mode="json"),
            usually=set_otherwise(planned, type(chosen)().planned(len(drawn))),
            from_scratch=chosen.from_scratch,
            target=pool.name,
            benchmark=benchmark,
            split=pool.split,
            fingerprint=pool.fingerprint,
            shots=shots,
            draw=number,
            missing_classes=missing_classes(drawn),
            parent=None if run.folder is None else str(run.folder),
            parent_weights=parent_weights,
            images=tuple(images),
            before=None if chosen.from_scratch else run.manifest.adaptation,
        )
        plans.append(Plan(drawn, judged, info, None if out is None else draw_folder(out, number, seeds)))
    return plans


def draw_folder(out: str | Path, seed: int, seeds: int) -> Path:
    """Where a draw's run is kept: in the folder that was asked for, or, of several draws, inside it."""
    return Path(out) if seeds == 1 else Path(out) / f"draw-{seed}"


def _adapted(run: Run, chosen: Adaptation, plan: Plan, known: Known, resume: bool, progress: bool) -> Run:
    """The run that one draw gives: its parent's answering method, or the adaptation's own, on an adapted network."""
    device, number = run.method.device, plan.info.draw
    trained_on = known.source if chosen.from_scratch and known.source is not None else plan.shots
    trainer = type(chosen)(**plan.info.settings)
    with seeded(number):
        network = afresh(run) if chosen.from_scratch else replace(run.network, module=copy.deepcopy(run.network.module))
        set_up_to_train(trainer, network, trained_on, device, seed=number, folder=plan.folder, shots=plan.shots)
    answers: Method = trainer
    if not chosen.from_scratch:
        answers = type(run.method)(**run.method.settings.model_dump())
        set_up_to_answer(answers, network, run.manifest, device, plan.folder)
        if answers.auxiliary is not None and run.method.auxiliary is not None:  # φ stays as it was learned
            answers.auxiliary.load_state_dict(run.method.auxiliary.state_dict())
    manifest = describe_adapted(run.manifest, plan.info, device)
    adapted = replace(run, method=answers, manifest=manifest, folder=plan.folder)
    return trained(adapted, trainer, known.source, known.calibration, resume=resume, progress=progress)


def _notes(run: Run, pool: Domain, plans: list[Plan], known: Known) -> list[str]:
    notes = []
    missing = tuple(dict.fromkeys(name for plan in plans for name in plan.info.missing_classes))
    if missing:
        notes.append(
            f"{pool.name} has no drawn image of class {', '.join(missing)}: nothing of it was learned there; the model "
            "keeps its answer for it, but will give it less often"
        )
    if any(plan.test is None for plan in plans):
        notes.append(f"{pool.name} was not scored: all its images were drawn, and there are no test images")
    elif plans[0].test is not None and plans[0].test.split == "not drawn":
        notes.append(f"{pool.name} has no test images of its own: what a draw left over was scored")
    if known.held_out is None:
        notes.append("what was forgotten was not measured: there are no held-out images of the source")
    if known.source is None and run.calibration is not None:
        notes.append("out_of_domain of the adapted model is unknown: it rests on the source, which is not at hand")
    return notes


def afresh(run: Run) -> NamedNetwork:
    """A network like the run's that has learned nothing."""
    if run.network.name is not None:
        shape, config = run.manifest.source.image_shape, run.network.config
        return replace(run.network, module=build_network(run.network.name, len(run.classes), shape, config).module)
    module = copy.deepcopy(run.network.module)
    for name, layer in module.named_modules():
        if callable(reset := getattr(layer, "reset_parameters", None)):
            reset()
        elif next(layer.parameters(recurse=False), None) is not None:
            given = f"layer {name or type(layer).__name__!r} of your own network cannot be started afresh"
            raise UserError("network", given, "layers with reset_parameters(), as torch's have")
    return replace(run.network, module=module)


def weights_fingerprint(module: nn.Module) -> str:
    """A short SHA-256 over all weights and buffers, by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]
