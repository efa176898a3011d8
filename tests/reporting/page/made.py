"""Runs made by hand: every number in them is chosen, none is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from onedomain import __version__
from onedomain.benchmarks import BENCHMARKS
from onedomain.evaluation.measures import wilson_interval
from onedomain.evaluation.outcome import Outcome
from onedomain.methods import method_class, method_names
from onedomain.methods.adapt import adaptation_class, adaptation_names
from onedomain.runs.manifest import AdaptationInfo, Environment, Manifest, NetworkInfo, SourceInfo
from onedomain.runs.outcomes import save_outcome
from onedomain.runs.records import RunRecords
from onedomain.training.checkpoint import save_checkpoint
from tests.corrupted import keys_of

CLASSES = ("nought", "one", "two")
ENVIRONMENT = Environment(python="3.11", torch="2.6", numpy="2.0", platform="Linux", device="cpu", threads=1)
STARTED = "2026-01-02T03:04:05+00:00"


def made_manifest(
    method="erm", seed=0, benchmark="bench", own=None, name="home", classes=CLASSES, source="source-print", **settings
):
    known = BENCHMARKS.get(benchmark or "")
    recipe = known.settings_of(method) if known else {}
    default, usual = (
        (method_class(method)(**given).settings.model_dump(mode="json") if method in method_names() else {"steps": 10})
        for given in ({}, recipe)
    )
    chosen = default | settings
    return Manifest(
        onedomain=__version__,
        method=method,
        settings=chosen,
        usually={name: value for name, value in usual.items() if chosen[name] != value},
        seed=seed,
        benchmark=benchmark,
        network=NetworkInfo(name=None if own else "lenet", own=own, embedding="features", perturb=()),
        source=SourceInfo(
            name=name,
            split="train",
            count=100,
            image_shape=(8, 8, 1),
            value_range=(0.0, 1.0),
            classes=classes,
            dense=False,
            void=None,
            fingerprint=source,
        ),
        environment=ENVIRONMENT,
        started=STARTED,
    )


def made_rows(accuracies, benchmark="bench", flagged=None, count=1000, data=None, seen=("home",), **others):
    """Records of accuracies by domain; `flagged` likewise."""
    rows = []
    for domain, value in accuracies.items():
        low, high = wilson_interval(value, count)
        common = {
            "onedomain": __version__,
            "benchmark": None if benchmark == "own" else benchmark,
            "domain": domain,
            **keys_of(domain),
            "unseen": domain not in seen,
            "split": "test",
            "count": count,
            "note": "",
            "data": data or f"print-{domain}",
            "date": STARTED,
            "parameters": 10,
            "training_parameters": 20_000,
            "train_seconds": 90.0,
            "peak_memory_mb": 7,
            **others,
        }
        rows.append({**common, "metric": "accuracy", "value": value, "low": low, "high": high})
        if flagged is not None:
            rows.append({**common, "metric": "flagged", "value": flagged[domain]})
        rows += [
            {**common, "metric": metric, "value": 0.25 + value / 10}
            for metric in ("ece", "nll", "brier", "aurc", "error_auroc")
        ]
    return rows


def made_run(accuracies, method="erm", seed=0, benchmark="bench", folder=None, flagged=None, rows=None, **settings):
    """A run in memory, as `read_run` gives it."""
    manifest = made_manifest(method, seed, **({"benchmark": benchmark} | settings))
    rows = made_rows(accuracies, benchmark, flagged) if rows is None else rows
    return RunRecords(Path(folder or f"runs/{method}-{seed}"), manifest, rows, [], True)


def adapted(run, rows=None, folder=None, **changes):
    """A run in memory that came out of another one by adapting; from scratch it takes the adaptation's method."""
    given = {"method": "fine-tune", "from_scratch": False, "target": "svhn", "benchmark": "digits", "shots": 7}
    given |= {"draw": 0, "split": "train", "fingerprint": "pool", "missing_classes": (), "parent": str(run.folder)}
    given |= changes
    given.setdefault("images", tuple(f"image-{number}" for number in range(10 * given["shots"])))
    kind = adaptation_class(given["method"]) if given["method"] in adaptation_names() else adaptation_class("fine-tune")
    usual = kind(**kind().planned(len(given["images"]))).settings.model_dump(mode="json")
    settings = usual | given.pop("settings", {})
    usually = {name: value for name, value in usual.items() if settings[name] != value}
    before = None if given["from_scratch"] else run.manifest.adaptation
    info = AdaptationInfo(
        **{"parent_weights": "w", "before": before, "settings": settings, "usually": usually, **given}
    )
    own = {"method": info.method, "settings": info.settings, "usually": usually} if info.from_scratch else {}
    manifest = run.manifest.model_copy(update={"adaptation": info, **own})
    named = f"{run.folder}-{info.target}-{info.method}-{info.shots}/draw-{info.draw}"
    return replace(run, manifest=manifest, results=run.results if rows is None else rows, folder=Path(folder or named))


def made_outcome(domain, predicted, labels, score, *, unseen=True, classes=CLASSES, fingerprint=None):
    """Answers on images whose brightness is their number; `score` is the domain score of each."""
    count = len(labels)
    images = np.zeros((count, 8, 8, 3), np.uint8) + np.arange(count, dtype=np.uint8)[:, None, None, None] * 20
    return Outcome(
        domain=domain,
        split="test",
        unseen=unseen,
        count=count,
        classes=classes,
        note="",
        fingerprint=fingerprint or f"print-{domain}",
        benchmark="bench",
        value_range=(0.0, 1.0),
        confidence=np.linspace(0.5, 1, count, dtype=np.float32),
        uncertainty=np.linspace(1, 0, count, dtype=np.float32),
        sample=np.arange(count),
        sample_probabilities=np.full((count, len(classes)), 1 / len(classes), np.float32),
        sample_images=images,
        labels=np.asarray(labels),
        predicted=np.asarray(predicted),
        domain_score=np.asarray(score, np.float32),
        sample_embedding=np.random.default_rng(0).normal(size=(count, 5)).astype(np.float16),
    )


def write_run(folder, run, outcomes=(), threshold=0.5, benchmark="bench"):
    """The run as a folder, finished and scored."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_text(yaml.safe_dump(run.manifest.model_dump(mode="json"), allow_unicode=True))
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in run.results))
    (folder / "model.safetensors").write_bytes(b"")
    for outcome in outcomes:
        save_outcome(outcome, folder, benchmark)
    save_checkpoint(folder / "calibration.safetensors", {"threshold": threshold, "images": 20, "held_out": True})
    return folder
