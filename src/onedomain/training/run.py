"""A run: a method trained on one source domain. Fit it, score it, ask it, save it, load it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain._version import __version__
from onedomain.components.predictive import Predictive
from onedomain.data.corruptions import in_record
from onedomain.data.domain import Domain
from onedomain.data.files import as_path, to_json_lines, write_atomically
from onedomain.data.folders import SECONDS_TO_WAIT, sole_use
from onedomain.data.own import as_domain, as_unlabelled, check_values, renamed
from onedomain.data.progress import progress as show_progress
from onedomain.errors import UserError, unknown
from onedomain.evaluation.calibration import Calibration
from onedomain.evaluation.gathering import Gathering
from onedomain.evaluation.measures import METRICS as SCORED
from onedomain.evaluation.outcome import Outcome
from onedomain.evaluation.scores import Evaluation, Scores, batches_in_order, score
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork
from onedomain.networks.weights import save_weights
from onedomain.runs.layout import ALL_UNSEEN, AUXILIARY, CALIBRATION, METRICS, RESULTS, WEIGHTS
from onedomain.runs.manifest import Manifest, begin_folder, refuse_used_folder
from onedomain.runs.outcomes import save_outcome
from onedomain.runs.rows import read_records
from onedomain.training.adapt import adapt
from onedomain.training.checkpoint import save_checkpoint
from onedomain.training.predictions import Predictions
from onedomain.training.snapshots import save_embeddings


@dataclass(repr=False)
class Run:
    """A trained network with everything that is needed to use it."""

    method: Method
    manifest: Manifest
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    folder: Path | None = None
    calibration: Calibration | None = None
    held_out: Domain | None = None  # images of the source that were not trained on; not kept in the folder

    def __repr__(self) -> str:
        """
        >>> import numpy as np, onedomain as od
        >>> od.fit("erm", (np.zeros((4, 16, 16), np.uint8), [0, 1, 0, 1]), steps=1, progress=False)
        Run(erm on source: 4 images of 2 classes, lenet, seed 0, 1 steps)
        """
        manifest, source = self.manifest, self.manifest.source
        network = manifest.network.name or manifest.network.own
        learned = f"{manifest.method} on {source.name}: {source.count:,} images of {len(source.classes)} classes"
        adapted = "" if manifest.adaptation is None else f", adapted to {manifest.adaptation.target}"
        where = "" if self.folder is None else f", in {self.folder}"
        steps = self.method.settings.steps
        return f"Run({learned}{adapted}, {network}, seed {manifest.seed}, {steps} steps{where})"

    @property
    def network(self) -> NamedNetwork:
        return self.method.network

    @property
    def classes(self) -> tuple[str, ...]:
        return self.manifest.source.classes

    def evaluate(
        self,
        domains: Mapping[str, Any],
        *,
        seen: Sequence[str] = (),
        batch_size: int = 250,
        progress: bool = False,
        keep_going: bool = False,
    ) -> Evaluation:
        """Score every domain; `seen` names those that the average over unseen domains leaves out.

        `batch_size` is the most images that are passed at once: fewer, if they are large. A file that cannot be read is
        an error; with `keep_going` its domain is left out, `missing` says why, and the others are scored.
        """
        if not (isinstance(domains, Mapping) and domains):
            raise UserError("domains", "none given", 'a mapping of names to data, such as {"night": (images, labels)}')
        if not isinstance(seen, (tuple, list)):
            raise UserError("seen", f"got {seen!r:.50}", "a list of names")
        for odd in [str(name) for name in seen if name not in domains]:
            raise unknown("seen", odd, map(str, domains))
        checked = {name: self.not_adapted_to(self.as_domain(data, name, "test")) for name, data in domains.items()}
        scores: dict[str, Scores] = {}
        outcomes: dict[str, Outcome] = {}
        missing: dict[str, UserError] = {}
        done = 0  # images of the domains before
        with show_progress("score", sum(map(len, checked.values())), shown=progress, unit="images") as update:
            for name, domain in checked.items():
                gathering = Gathering(domain, unseen=name not in seen)
                try:
                    scores[name] = score(
                        # Draws add nothing to what is scored
                        partial(Predictive.in_shares, partial(self.method.predictive, draws=0)),
                        domain,
                        calibration=self.calibration,
                        device=self.method.device,
                        batch_size=batch_size,
                        each=lambda images, before=done: update(before + images, {}),  # type: ignore[misc]
                        gathering=gathering,
                    )
                except UserError as error:  # what is wrong with a frame is known when it is read
                    missing[name] = error
                    if not keep_going or len(missing) == len(checked):
                        raise
                else:
                    outcomes[name] = gathering.outcome()
                done += len(domain)
                update(done, {})
        reasons = tuple(f"domain '{name}': {error}" for name, error in missing.items())
        return Evaluation(scores, tuple(name for name in scores if name not in seen), outcomes, reasons)

    adapt = adapt

    def predict(self, images: Any, *, batch_size: int = 250) -> Predictions:
        """Classify images: an array, one image or many, images of Pillow, paths of files, or of folders.

        What comes from files or Pillow is brought to the size of the source; arrays must have it.
        """
        array, files = as_unlabelled(images, self.manifest.source.image_shape)
        unlabelled = Domain("images", "predict", array, np.zeros(len(array), np.int64), self.classes)
        self._check_images("images", unlabelled)
        rows = []
        dense = self.manifest.source.dense
        # Segmentation gives pixels times classes: single precision is enough, and half as large.
        kept = torch.float32 if dense else torch.float64
        for batch in batches_in_order(unlabelled, batch_size, self.method.device, dense):
            said = self.method.predictive(batch.images)
            row = {
                "probabilities": said.probabilities.to(kept),
                "uncertainty": said.entropy,
                "mean_probabilities": said.mean.to(kept),
                "predictive_entropy": said.predictive_entropy,
                "mutual_information": said.mutual_information,
            }
            rows.append(row if self.calibration is None else row | {"domain_score": self.calibration.score(said)})
        columns = {name: torch.cat([row[name] for row in rows]).cpu().numpy() for name in rows[0]}
        if self.calibration is not None:
            columns["out_of_domain"] = columns["domain_score"] > self.calibration.threshold
        return Predictions(labels=columns["probabilities"].argmax(1), classes=self.classes, files=files, **columns)

    def save(self, folder: str | Path) -> Path:
        """Write the run folder; the weights as safetensors, readable by any other tool."""
        path = as_path(folder, "folder")
        refuse_used_folder(path)
        with sole_use(path):
            begin_folder(path, self.manifest)
            write_atomically(path / METRICS, to_json_lines(self.history))
            self.save_model(path)
        self.folder = path
        return path

    def save_model(self, folder: Path) -> None:
        """Write what is needed to use the run; the weights last, so that their file means a finished run."""
        if self.calibration is not None:
            save_checkpoint(folder / CALIBRATION, self.calibration.state_dict())
        if self.method.auxiliary is not None:
            save_weights(folder / AUXILIARY, self.method.auxiliary.state_dict())
        save_weights(folder / WEIGHTS, self.network.state_dict())

    def records(self, evaluation: Evaluation, benchmark: str | None = None) -> list[dict[str, Any]]:
        """One record per domain and metric, each with all that a table must say of it.

        `benchmark` is whose domains were scored; `trained_on` in a record is whose source the run was trained on.
        """
        common = {
            "onedomain": __version__,
            "method": self.manifest.method,
            "benchmark": benchmark,
            "trained_on": self.manifest.benchmark,
            "seed": self.manifest.seed,
            "steps": self.method.settings.steps,
            "settings": self.manifest.settings,
            "usually": self.manifest.usually,
            "recipe": self.manifest.recipe,
            "source": self.manifest.source.fingerprint,
            "parameters": self.network.parameter_count,
            "training_parameters": self.method.training_parameters,
            "train_seconds": round(self.seconds, 1),
            "peak_memory_mb": max((row.get("memory_mb", 0) for row in self.history), default=0),
            "device": self.manifest.environment.device,
            "threads": self.manifest.environment.threads,
            "processes": self.manifest.environment.processes,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
        if self.manifest.adaptation is not None:
            common["adaptation"] = self.manifest.adaptation.in_short()
        rows = []
        for name, scores in evaluation.scores.items():
            of_domain = {"domain": name, "split": scores.split, "unseen": name in evaluation.unseen}
            of_domain |= in_record(scores.corruption)
            more: dict[str, dict[str, Any]] = {
                "accuracy": {"low": scores.low, "high": scores.high},
                "miou": {"low": scores.miou_low, "high": scores.miou_high},
                **{f"iou/{each}": {"class": each} for each in scores.iou},
            }
            values = {metric: getattr(scores, metric) for metric in SCORED}
            for metric, value in {**values, **{f"iou/{each}": iou for each, iou in scores.iou.items()}}.items():
                if value is not None:
                    row = {**of_domain, "metric": metric, "value": value, "count": scores.count, "note": scores.note}
                    rows.append(row | more.get(metric, {}) | {"data": scores.fingerprint} | common)
        correlation = evaluation.rank_correlation()
        if correlation is not None:
            row = {"domain": ALL_UNSEEN, "split": "test", "unseen": False, "metric": "rank_correlation"}
            rows.append(row | {"value": correlation, "count": len(evaluation.unseen)} | common)
        for measured in self.history:
            if "domain" in measured:
                rows += [
                    {"domain": measured["domain"], "split": "train", "unseen": False, "metric": metric, "value": value}
                    | common
                    for metric, value in measured.items()
                    if metric not in ("step", "domain")
                ]
        return rows

    def write_records(self, evaluation: Evaluation, benchmark: str | None = None) -> None:
        """Keep scores and answers in the run folder; a domain that is scored again replaces its old ones."""
        if self.folder is None:
            raise UserError("run", "has no folder", "a run that was saved or trained with out=")
        new = self.records(evaluation, benchmark)
        replaced = {(row["benchmark"], row["domain"]) for row in new}
        with sole_use(self.folder, seconds=SECONDS_TO_WAIT):
            for outcome in evaluation.outcomes.values():
                save_outcome(outcome, self.folder, benchmark)
            path = self.folder / RESULTS
            old = read_records(path)
            kept = [row for row in old if (row.get("benchmark"), row["domain"]) not in replaced]
            write_atomically(path, to_json_lines(kept + new))
            save_embeddings(self.folder, self.method, self.manifest.source.image_shape)

    def as_domain(self, data: Any, name: str, split: str) -> Domain:
        """Data in any form that `fit` takes, refused if its classes or the shape of its images do not fit this run."""
        height, width, channels = self.manifest.source.image_shape
        domain = renamed(as_domain(data, name, split, self.classes, (height, width), channels), name)
        if domain.classes != self.classes:
            given = f"has the {len(domain.classes)} classes {_list(domain.classes)}"
            raise UserError(name, given, f"those of the source, {_list(self.classes)}")
        self._check_images(name, domain)
        return domain

    def not_adapted_to(self, domain: Domain) -> Domain:
        """A domain without the images that the run was adapted to, which it has seen."""
        known = {image for info in self.manifest.adaptations for image in info.images}
        if not known:
            return domain
        others = domain.without(known)
        if others is None:
            raise UserError(domain.name, "holds only images that this run was adapted to", "others to score")
        if len(others) == len(domain):
            return domain
        note = f"{len(domain) - len(others)} adapted to, left out"
        return replace(others, note="; ".join(part for part in (domain.note, note) if part))

    def _check_images(self, name: str, domain: Domain) -> None:
        expected = self.manifest.source.image_shape
        if domain.image_shape != expected:
            given = "×".join(map(str, domain.image_shape))
            raise UserError(name, f"images are {given}", f"{'×'.join(map(str, expected))} (height, width, channels)")
        check_values(name, domain.value_range, self.manifest.source.value_range)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
