"""Run folders written by hand: figures need no data and no model, and neither do their tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import onedomain as od
from onedomain.data.arrays import save_arrays
from onedomain.data.files import to_json_lines
from onedomain.evaluation.outcome import Outcome
from onedomain.methods import method_class
from onedomain.runs.manifest import Environment, Manifest, NetworkInfo, SourceInfo, begin_folder
from onedomain.runs.outcomes import save_outcome
from onedomain.runs.records import RunRecords, read_run
from onedomain.training.begin import set_otherwise
from tests.corrupted import keys_of

CLASSES = ("a", "b", "c")


def make_run(folder: Path, method="erm", seed=0, settings=None, accuracies=None, scores=None, benchmark="bench"):
    """A finished run whose records are `accuracies`, by domain; the first domain is the source."""
    configured = method_class(method)(**(settings or {}))
    source = SourceInfo(
        name="s", split="train", count=60, image_shape=(4, 4, 1), value_range=(0.0, 1.0), classes=CLASSES,
        dense=False, void=None, fingerprint="f",
    )  # fmt: skip
    environment = Environment(python="3", torch="2", numpy="2", platform="p", device="cpu", threads=1)
    manifest = Manifest(
        onedomain=od.__version__, method=method, settings=configured.settings.model_dump(mode="json"), seed=seed,
        usually=set_otherwise(configured, {}),
        benchmark=benchmark, network=NetworkInfo(name="lenet", embedding="e", perturb=()), source=source,
        environment=environment, started="now",
    )  # fmt: skip
    begin_folder(folder, manifest)
    rows = []
    for place, (domain, accuracy) in enumerate((accuracies or {"s": 0.9, "x": 0.5}).items()):
        common = {
            "domain": domain, "unseen": place > 0, "data": domain, "benchmark": benchmark, "onedomain": od.__version__,
            **keys_of(domain),
        }  # fmt: skip
        rows.append({**common, "metric": "accuracy", "value": accuracy, "low": accuracy - 0.1, "high": accuracy + 0.05})
        if scores:
            rows.append({**common, "metric": "domain_score", "value": scores[domain]})
            rows.append({**common, "metric": "flagged", "value": scores[domain] / 10})
    (folder / "results.jsonl").write_text(to_json_lines(rows))
    (folder / "metrics.jsonl").write_text("")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def add_outcome(folder: Path, domain: str, unseen=True, benchmark="bench", **arrays) -> Outcome:
    """Answers on a domain; what is not given is made up."""
    rng = np.random.default_rng(len(domain))
    count = len(next(iter(arrays.values()))) if arrays else 30
    sample = np.arange(min(count, 20))
    given = {
        "labels": np.arange(count) % 3,
        "predicted": np.arange(count) % 3,
        "confidence": np.full(count, 0.9),
        "uncertainty": rng.random(count),
        "sample": sample,
        "sample_probabilities": np.full((len(sample), 3), 1 / 3, np.float32),
        "sample_images": np.zeros((len(sample), 4, 4, 1), np.uint8),
        "sample_embedding": (rng.normal(size=(len(sample), 8)) + np.arange(len(sample))[:, None] % 3).astype(
            np.float16
        ),
        **arrays,
    }
    outcome = Outcome(
        domain=domain, split="test", unseen=unseen, count=count, classes=CLASSES, note="", fingerprint=domain,
        benchmark=benchmark, value_range=(0.0, 1.0), **given,
    )  # fmt: skip
    save_outcome(outcome, folder, benchmark)
    return outcome


def add_snapshot(folder: Path, step: int, **arrays) -> None:
    rng = np.random.default_rng(step)
    given = {
        "labels": np.arange(12) % 3,
        "images": np.zeros((4, 4, 4, 1), np.uint8),
        "perturbation": np.full((12, 2), 0.1 * step, np.float32),
        "perturbation_maps": rng.random((4, 3, 3)).astype(np.float16),
        "embedding": rng.normal(size=(12, 8)).astype(np.float16),
        "perturbed_embedding": rng.normal(size=(12, 8)).astype(np.float16),
        "mixed_labels": np.tile(np.array([[0.9, 0.05, 0.05]], np.float32), (24, 1)),
        **arrays,
    }
    save_arrays(folder / "snapshots" / f"step-{step:09d}.safetensors", {"step": step}, given)


def add_augmented(folder: Path, number: int, embedded=True) -> None:
    rng = np.random.default_rng(number)
    name = f"augmented-{number}"
    images = rng.integers(0, 256, (2, 10, 4, 4, 1), dtype=np.uint8)
    arrays = {"originals": images[0], "images": images[1], "labels": np.arange(20) % 3, "origins": np.arange(10) % 2}
    save_arrays(folder / "augmented" / f"{name}.sample.safetensors", {"domain": name}, arrays)
    if embedded:
        vectors = (rng.normal(size=(20, 8)) + np.arange(20)[:, None] % 3).astype(np.float16)
        save_arrays(folder / "augmented" / f"{name}.embedding.safetensors", {"domain": name}, {"embedding": vectors})


def full_run(folder: Path, method="sdg", **options) -> RunRecords:
    """A run with everything a figure can be made from."""
    make_run(folder, method, scores={"s": 1.0, "x": 2.0, "y": 3.0, "z": 4.0},
             accuracies={"s": 0.9, "x": 0.8, "y": 0.5, "z": 0.3}, **options)  # fmt: skip
    for domain in "sxyz":
        add_outcome(folder, domain, unseen=domain != "s")
    if method == "uncertain-sdg":
        for step in (10, 20, 40):
            add_snapshot(folder, step)
    if method == "sdg":
        add_augmented(folder, 1)
        add_augmented(folder, 2)
    return read_run(folder)
