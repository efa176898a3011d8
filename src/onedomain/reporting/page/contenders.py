"""What is compared: a method with its settings, in as many runs as there are seeds or draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.reporting.grouping import (
    Group,
    adapted_to,
    changed_settings,
    group_runs,
    other_network,
    repetition,
    run_title,
    usual_settings,
)
from onedomain.reporting.reproduce.tables import SCALES
from onedomain.runs.records import RunRecords

BASELINE = "erm"  # plain training, which every other method is to beat
# Settings that `reproduce` makes smaller for a quick look: the method is the same one, its protocol a reduced one.
SIZES = ("steps", *sorted({name for scale in SCALES.values() for each in scale.settings.values() for name in each}))


@dataclass(frozen=True)
class Contender:
    """A method with its settings, in as many runs as there are seeds or, of an adapted one, draws."""

    title: str
    method: str
    changed: Mapping[str, Any]  # settings that differ from the benchmark's, without what only reduces the protocol
    reduced: Mapping[str, tuple[float, float]]  # what is smaller than the protocol has it, and how large it has it
    runs: tuple[RunRecords, ...] = field(repr=False)
    rows: tuple[Mapping[str, Mapping[str, Mapping[str, Any]]], ...] = field(repr=False)  # of each run: domain, metric

    @property
    def adapted_to(self) -> set[str]:
        """The domains of which it has learned a few images; none for runs that were only trained."""
        return adapted_to(self.runs[0])

    @property
    def other_network(self) -> bool:
        return other_network(self.runs[0])

    @property
    def seeds(self) -> list[str]:
        """What tells the runs apart: seeds, or draws, or both where both differ."""
        numbers = [repetition(run) for run in self.runs]
        differing = [place for place, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
        return ["-".join(str(number[place]) for place in differing or (-1,)) for number in numbers]

    @property
    def repeated(self) -> str:
        """What they are numbers of: `seed` or, of adapted runs, `draw`."""
        return "draw" if self.adapted_to else "seed"

    @property
    def steps(self) -> int:
        """Of training or, of an adapted run, of adapting."""
        manifest = self.runs[0].manifest
        return int((manifest.adaptation.settings if manifest.adaptation else manifest.settings)["steps"])

    def mean(self, domain: str, metric: str) -> float | None:
        """Over the runs that have it."""
        values = [rows[domain][metric]["value"] for rows in self.rows if metric in rows.get(domain, {})]
        return fmean(values) if values else None


def is_baseline(contender: Contender) -> bool:
    return contender.method == BASELINE and not contender.changed and not contender.adapted_to


def contenders_of(runs: Sequence[RunRecords], benchmark: str) -> list[Contender]:
    """Runs that differ in nothing but seed or draw are one contender."""
    groups = group_runs(runs)
    for group in groups:
        seen: dict[tuple[int, ...], RunRecords] = {}
        for run in group.runs:
            other = seen.setdefault(repetition(run), run)
            if other is not run:
                given = f"is the same as {other.folder}: {_which(run)}, same settings"
                raise UserError(str(run.folder), given, "each run once")
    return [_contender(group, benchmark) for group in groups]


def _which(run: RunRecords) -> str:
    draws = [f"draw {info.draw}" for info in reversed(run.manifest.adaptations)]
    scratch = any(info.from_scratch for info in run.manifest.adaptations)
    return ", ".join([run_title(run), *([] if scratch else [f"seed {run.manifest.seed}"]), *draws])


def _contender(group: Group, benchmark: str) -> Contender:
    first = group.runs[0]
    usual, changed = usual_settings(first), changed_settings(first)
    smaller = [name for name in SIZES if name in changed and name in usual and changed[name] < usual[name]]
    if first.manifest.benchmark not in BENCHMARKS:  # there is no protocol to fall short of
        smaller = []
    reduced = {name: (changed[name], usual[name]) for name in smaller}
    changed = {name: value for name, value in changed.items() if name not in ("steps", *smaller)}
    rows = tuple(run.scores(benchmark) for run in group.runs)
    return Contender(group.label, group.method, changed, reduced, group.runs, rows)


def trained_for(run: RunRecords, benchmark: str) -> bool:
    """Whether the run's source is that of the benchmark; some benchmarks share theirs."""
    own, asked = BENCHMARKS.get(run.manifest.benchmark or ""), BENCHMARKS.get(benchmark)
    return run.manifest.benchmark == benchmark or (own is not None and asked is not None and own.train is asked.train)
