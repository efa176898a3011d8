"""A run: a method trained on one source domain. Fit it, score it, ask it, save it, load it."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from onedomain._version import __version__
from onedomain.checkpoint import load_weights, save_weights
from onedomain.data.domain import Domain, IntArray
from onedomain.data.own import as_domain, as_images, renamed
from onedomain.errors import UserError
from onedomain.evaluation import METRICS as SCORED
from onedomain.evaluation import Evaluation, Scores, batches_in_order, score
from onedomain.files import make_folder, read_json_lines, to_json_lines, write_atomically
from onedomain.manifest import (
    MANIFEST,
    Manifest,
    describe_run,
    read_manifest,
    refuse_changes,
    refuse_used_folder,
    warn_of_other_environment,
    write_manifest,
)
from onedomain.methods import method_class
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network, own_network
from onedomain.progress import progress as show_progress
from onedomain.training import METRICS, private_randomness, seed_everything, train

WEIGHTS = "model.safetensors"
RESULTS = "results.jsonl"


@dataclass(frozen=True)
class Predictions:
    """What a model says of images: a class each, the probability of every class, and its uncertainty.

    `uncertainty` is the entropy of the probabilities, in nats: 0 when certain, log(classes) when clueless.
    For dense outputs `labels` and `uncertainty` are maps (N, H, W), `probabilities` (N, C, H, W).
    """

    labels: IntArray
    probabilities: np.ndarray
    uncertainty: np.ndarray
    classes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [self.classes[label] for label in self.labels.ravel()]


@dataclass
class Run:
    """A trained network with everything that is needed to use it."""

    method: Method
    manifest: Manifest
    history: list[dict[str, float]] = field(default_factory=list, repr=False)
    seconds: float = 0.0
    folder: Path | None = None

    @property
    def network(self) -> NamedNetwork:
        return self.method.network

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.manifest.source["classes"])

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        self.network.module.eval()
        with torch.inference_mode():
            return self.network(images)

    def evaluate(
        self,
        domains: Mapping[str, Any],
        *,
        seen: Sequence[str] = (),
        batch_size: int = 250,
        progress: bool = False,
    ) -> Evaluation:
        """Score every domain; `seen` names those that the average over unseen domains leaves out."""
        if not domains:
            raise UserError("domains", "none given", 'a mapping of names to data, such as {"night": (images, labels)}')
        checked: dict[str, Domain] = {}
        for name, data in domains.items():
            domain = renamed(as_domain(data, name, "test", self.classes), name)
            if domain.classes != self.classes:
                given = f"has the {len(domain.classes)} classes {_list(domain.classes)}"
                raise UserError(name, given, f"those of the source, {_list(self.classes)}")
            self._check_shape(name, domain.image_shape)
            checked[name] = domain
        scores: dict[str, Scores] = {}
        done = 0
        with show_progress("score", sum(map(len, checked.values())), shown=progress, unit="images") as update:

            def each(images: int) -> None:
                nonlocal done
                done += images
                update(done, {})

            for name, domain in checked.items():
                scores[name] = score(self.logits, domain, device=self.method.device, batch_size=batch_size, each=each)
        return Evaluation(scores, tuple(name for name in scores if name not in seen))

    def predict(self, images: Any, *, batch_size: int = 250) -> Predictions:
        """Classify images, given as `as_images` takes them."""
        array = as_images(images)
        _, height, width, channels = array.shape
        self._check_shape("images", (height, width, channels))
        unlabelled = Domain("images", "predict", array, np.zeros(len(array), np.int64), self.classes)
        parts = []
        for batch in batches_in_order(unlabelled, batch_size, self.method.device):
            parts.append(self.logits(batch.images).double().softmax(1).cpu())
        probabilities = torch.cat(parts)
        entropy = torch.special.entr(probabilities).sum(1)
        return Predictions(probabilities.argmax(1).numpy(), probabilities.numpy(), entropy.numpy(), self.classes)

    def save(self, folder: str | Path) -> Path:
        """Write the run folder; the weights as safetensors, readable by any other tool."""
        path = Path(folder)
        refuse_used_folder(path)
        make_folder(path)
        write_manifest(path, self.manifest)
        write_atomically(path / METRICS, to_json_lines(cast("list[dict[str, Any]]", self.history)))
        save_weights(path / WEIGHTS, self.network.module.state_dict())
        self.folder = path
        return path

    def records(self, evaluation: Evaluation) -> list[dict[str, Any]]:
        """One record a domain and metric, each with all that a table must say of it."""
        common = {
            "onedomain": __version__,
            "method": self.manifest.method,
            "benchmark": self.manifest.benchmark,
            "seed": self.manifest.seed,
            "steps": self.method.settings.steps,
            "settings": self.manifest.settings,
            "source": self.manifest.source["fingerprint"],
            "parameters": self.network.parameter_count,
            "train_seconds": round(self.seconds, 1),
            "peak_memory_mb": peak_memory_mb(),
            "device": self.manifest.environment["device"],
            "threads": self.manifest.environment["threads"],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
        rows = []
        for name, scores in evaluation.scores.items():
            for metric in SCORED:
                row = {
                    "domain": name,
                    "split": scores.split,
                    "unseen": name in evaluation.unseen,
                    "metric": metric,
                }
                row |= {"value": getattr(scores, metric), "count": scores.count, "note": scores.note}
                if metric == "accuracy":
                    row |= {"low": scores.low, "high": scores.high}
                rows.append(row | {"data": scores.fingerprint} | common)
        return rows

    def write_records(self, evaluation: Evaluation) -> None:
        """Keep the scores in the run folder; a domain that is scored again replaces its old records."""
        if self.folder is None:
            raise UserError("run", "has no folder", "a run that was saved or trained with out=")
        path = self.folder / RESULTS
        kept = [row for row in read_json_lines(path) if row["domain"] not in evaluation.scores]
        write_atomically(path, to_json_lines(kept + self.records(evaluation)))

    def _check_shape(self, name: str, shape: tuple[int, int, int]) -> None:
        expected = tuple(self.manifest.source["image_shape"])
        if shape != expected:
            given = "×".join(map(str, shape))
            raise UserError(name, f"images are {given}", f"{'×'.join(map(str, expected))} (height, width, channels)")


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
    if steps is not None:
        method = type(method)(**{**method.settings.model_dump(), "steps": steps})
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise UserError("seed", f"got {seed!r}", "a whole number from 0 to 4294967295")
    domain = as_domain(source).require_every_class()
    where = pick_device(device)
    with private_randomness():
        seed_everything(seed, step=-1)
        named = _network_for(domain, network, embedding, perturb)
    method.attach(named, where)
    named.check_fits(domain, where)

    manifest = describe_run(method, domain, seed, benchmark, where)
    folder = None if out is None else Path(out)
    if folder is not None:
        if resume and (folder / MANIFEST).exists():
            before = read_manifest(folder)
            refuse_changes(before, manifest)
            warn_of_other_environment(before, manifest)
            manifest = before
        else:
            refuse_used_folder(folder)
            make_folder(folder)
            write_manifest(folder, manifest)
    history, seconds = train(method, domain, seed=seed, folder=folder, shown=progress)
    if folder is not None:
        save_weights(folder / WEIGHTS, named.module.state_dict())
    return Run(method, manifest, history, seconds, folder)


def load(folder: str | Path, *, network: nn.Module | None = None, device: str | torch.device | None = None) -> Run:
    """A run from its folder. A network of one's own must be given again: only its weights are in the folder."""
    path = Path(folder)
    manifest = read_manifest(path)
    if not (path / WEIGHTS).exists():
        raise UserError(str(path), "this run has not finished", "a finished run; go on with onedomain train --resume")
    spec = manifest.network
    if "own" in spec:
        if network is None:
            raise UserError(
                "network",
                f"{path} was trained with your own {spec['own']}",
                f"od.load({str(path)!r}, network=…)",
            )
        named = own_network(network, spec["embedding"], spec["perturb"])
    else:
        named = build_network(spec["name"], spec["classes"], spec["image_shape"])
        named = replace(named, embedding=spec["embedding"], perturb=tuple(spec["perturb"]))
    where = pick_device(device)
    try:
        named.module.load_state_dict(load_weights(path / WEIGHTS))
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(str(path / WEIGHTS), f"does not fit the network ({reason})") from None
    method = method_class(manifest.method)(**manifest.settings)
    method.attach(named, where)
    history = cast("list[dict[str, float]]", read_json_lines(path / METRICS))
    return Run(method, manifest, history, history[-1]["seconds"] if history else 0.0, path)


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the fastest one there is."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UserError(
            "device", f"{str(device)!r} is not there", "cpu, cuda, cuda:0, mps as this machine has"
        ) from None
    return chosen


def peak_memory_mb() -> int | None:
    """The most memory this process has held so far, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(used / 2**20 if sys.platform == "darwin" else used / 2**10)


def _network_for(
    domain: Domain, network: str | nn.Module | None, embedding: str | None, perturb: Sequence[str]
) -> NamedNetwork:
    if network is None or isinstance(network, str):
        if domain.dense and network is None:
            raise UserError("network", "the labels are dense, and no network is given", "a network with dense outputs")
        named = build_network(network or "lenet", len(domain.classes), domain.image_shape)
        return replace(named, embedding=embedding or named.embedding, perturb=tuple(perturb) or named.perturb)
    return own_network(network, embedding, perturb)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
