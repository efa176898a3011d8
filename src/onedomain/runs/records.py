"""Run folders as records: what was trained, what it scored and what it answered, without data and without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from onedomain.data.data_frame import data_frame
from onedomain.errors import UserError
from onedomain.evaluation.outcome import Outcome
from onedomain.evaluation.threshold import read_threshold
from onedomain.runs.commandline import evaluate_command, onedomain, resume_command
from onedomain.runs.identity import Identity, identify
from onedomain.runs.layout import BEFORE, CALIBRATION, MANIFEST, METRICS, OWN, RESULTS, WEIGHTS
from onedomain.runs.manifest import Manifest, read_manifest
from onedomain.runs.outcomes import read_outcomes
from onedomain.runs.rows import read_metrics, read_records
from onedomain.runs.samples import AugmentedSample, Snapshot, read_samples, read_snapshots


@dataclass(frozen=True)
class RunRecords:
    """One run folder. `results` are the rows of results.jsonl, `metrics` those of metrics.jsonl."""

    folder: Path
    manifest: Manifest
    results: list[dict[str, Any]] = field(repr=False)
    metrics: list[dict[str, Any]] = field(repr=False)
    finished: bool
    _outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict, repr=False, compare=False)

    def to_frame(self) -> Any:
        """A row per domain and metric, as a DataFrame of pandas."""
        return data_frame(self.results)

    @cached_property
    def identity(self) -> Identity:
        return identify(self.manifest)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Whose domains were scored, the first one first; `own` stands for images of the user's own."""
        return tuple(dict.fromkeys(_benchmark(row) for row in self.results if "data" in row))

    @cached_property
    def threshold(self) -> float | None:
        """The domain score above which an image is out of domain; None for a run without a calibration."""
        path = self.folder / CALIBRATION
        return read_threshold(path).threshold if path.exists() else None

    def scores(self, benchmark: str) -> dict[str, dict[str, dict[str, Any]]]:
        """The rows of a benchmark's domains, by domain and metric, in the order of scoring."""
        return _by_domain(self.results, benchmark)

    def scores_before(self, benchmark: str) -> dict[str, dict[str, dict[str, Any]]]:
        """Of an adapted run: its parent's rows, on the same images; empty for a run that was only trained."""
        return _by_domain(read_records(self.folder / BEFORE), benchmark)

    def outcomes(self, benchmark: str) -> dict[str, Outcome]:
        """What the run answered on a benchmark's domains, by domain, in the order of scoring; read once.

        Empty for a run that was scored before answers were kept.
        """
        if benchmark not in self._outcomes:
            found = read_outcomes(self.folder, benchmark)
            kept: dict[str, Outcome] = {}
            for domain, rows in self.scores(benchmark).items():
                if domain not in found:
                    continue
                data = next(iter(rows.values()))["data"]
                if found[domain].fingerprint != data:
                    given = f"the answers on {domain} are of other images than the records"
                    raise UserError(str(self.folder), given, self.evaluate_command(benchmark))
                kept[domain] = found[domain]
            self._outcomes[benchmark] = kept
        return self._outcomes[benchmark]

    def augmented(self) -> list[AugmentedSample]:
        """Samples of the domains that the method made, in that order; none for most methods."""
        return read_samples(self.folder)

    def snapshots(self) -> list[Snapshot]:
        """Moments of the training, the first one first; none for most methods."""
        return read_snapshots(self.folder)

    def evaluate_command(self, benchmark: str | None = None) -> str:
        """What to type to score this run."""
        known = benchmark is not None or self.manifest.benchmark is None
        return evaluate_command(self.folder, benchmark) if known else onedomain("evaluate", str(self.folder))


def read_run(folder: str | Path, *, unfinished: bool = False) -> RunRecords:
    """A run that has finished and was scored; with `unfinished`, one as far as it is."""
    path = Path(folder)
    if not path.is_dir():
        given = "is a file" if path.exists() else "is not there"
        raise UserError(str(folder), given, "run folders, as onedomain train makes them")
    if not (path / MANIFEST).is_file():
        inside = sorted(found.parent for found in path.glob(f"*/{MANIFEST}"))
        if inside:
            raise UserError(str(folder), f"holds {len(inside)} runs, and is none itself", f"{folder}/*")
        given = "is empty" if not any(path.iterdir()) else f"is not a run folder (it has no {MANIFEST})"
        raise UserError(str(folder), given, "run folders, as onedomain train makes them")
    run = RunRecords(
        path,
        read_manifest(path),
        read_records(path / RESULTS),
        read_metrics(path / METRICS),
        (path / WEIGHTS).exists(),
    )
    if unfinished:
        return run
    if not run.finished:
        done = max((row["step"] for row in run.metrics), default=0)
        settings = run.manifest.adaptation.settings if run.manifest.adaptation else run.manifest.settings
        raise UserError(
            str(folder),
            f"has not finished ({done} of {settings.get('steps', '?')} steps)",
            f"a finished run; wait, or: {resume_command(run.manifest, folder)}",
        )
    if not run.benchmarks:
        raise UserError(str(folder), "has no records", f"a run that was scored: {run.evaluate_command()}")
    return run


def read_runs(folders: Sequence[str | Path]) -> list[RunRecords]:
    """Several runs that can be compared: finished, scored, and of one version of onedomain."""
    if not folders:
        raise UserError("runs", "none given", "run folders, as onedomain train makes them")
    runs: list[RunRecords] = []
    for folder in folders:
        if any(Path(folder).resolve() == run.folder.resolve() for run in runs):
            raise UserError(str(folder), "is given twice", "each run once")
        runs.append(read_run(folder))
    version, where = _version(runs[0].manifest.onedomain), runs[0].folder
    for run in runs:
        for text in (run.manifest.onedomain, *(str(row.get("onedomain")) for row in run.results)):
            if _version(text) != version:
                given = f"is of onedomain {text}, and {where} of {runs[0].manifest.onedomain}"
                raise UserError(str(run.folder), given, "runs trained and scored by one version")
    return runs


def common_benchmark(runs: Sequence[RunRecords], benchmark: str | None = None) -> str:
    """The benchmark to compare runs on: the one asked for, else the first that all were scored on."""
    if benchmark is None:
        shared = [name for name in runs[0].benchmarks if all(name in run.benchmarks for run in runs)]
        if shared:
            return shared[0]
        scored = "; ".join(f"{run.folder} on {', '.join(run.benchmarks)}" for run in runs)
        raise UserError("benchmark", f"the runs were scored on different ones ({scored})", "one that all have")
    for run in runs:
        if benchmark not in run.benchmarks:
            given = f"has no records of {benchmark}, only of {', '.join(run.benchmarks)}"
            raise UserError(str(run.folder), given, run.evaluate_command(benchmark))
    return benchmark


def _by_domain(rows: Sequence[dict[str, Any]], benchmark: str) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if _benchmark(row) == benchmark and "data" in row:  # others are of made domains, or of several together
            found.setdefault(row["domain"], {})[row["metric"]] = row
    return found


def _benchmark(row: dict[str, Any]) -> str:
    return row.get("benchmark") or OWN


def _version(text: str) -> tuple[str, ...]:
    """Major and minor: what is after them changes no record.

    >>> _version("0.2.1")
    ('0', '2')
    """
    return tuple(text.split(".")[:2])
