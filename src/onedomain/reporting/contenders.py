"""What is compared: a method with its settings, in as many runs as there are seeds or draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.average import mean_of_known
from onedomain.reporting.names import run_title, titles
from onedomain.reporting.reproduce.tables import SCALES
from onedomain.runs.baseline import BASELINE
from onedomain.runs.identity import changed_settings
from onedomain.runs.manifest import Manifest
from onedomain.runs.records import RunRecords

# Settings that `reproduce` makes smaller for a quick look: the method is the same one, its protocol a reduced one.
SIZES = ("steps", *sorted({name for scale in SCALES.values() for each in scale.settings.values() for name in each}))


@dataclass(frozen=True)
class Contender:
    """Runs that differ in nothing but seed or, of adapted ones, draw, and the title that tells them from others."""

    title: str
    runs: tuple[RunRecords, ...] = field(repr=False)
    benchmark: str

    @property
    def manifest(self) -> Manifest:
        """Of the first run, which stands for the others."""
        return self.runs[0].manifest

    @cached_property
    def rows(self) -> tuple[Mapping[str, Mapping[str, Mapping[str, Any]]], ...]:
        """The records of each run on the benchmark, by domain and metric."""
        return tuple(run.scores(self.benchmark) for run in self.runs)

    @property
    def reduced(self) -> dict[str, tuple[float, float]]:
        """What is smaller than the benchmark's protocol has it, and how large it has it."""
        usually = self.manifest.usually or {}
        changed = changed_settings(self.manifest.settings, usually)
        if self.manifest.benchmark not in BENCHMARKS:  # there is no protocol to fall short of
            return {}
        return {
            name: (changed[name], usually[name])
            for name in SIZES
            if isinstance(changed.get(name), (int, float)) and isinstance(usually[name], (int, float))
            if changed[name] < usually[name]
        }

    @property
    def changed(self) -> dict[str, Any]:
        """Settings that were set otherwise, without what only reduces the protocol."""
        changed = changed_settings(self.manifest.settings, self.manifest.usually)
        return {name: value for name, value in changed.items() if name not in ("steps", *self.reduced)}

    @property
    def adapted_to(self) -> set[str]:
        """The domains of which it has learned a few images; none for runs that were only trained."""
        return adapted_to(self.runs[0])

    @property
    def other_network(self) -> bool:
        """Whether it has another network than its benchmark's, or one that began with weights from a file."""
        benchmark, network = BENCHMARKS.get(self.manifest.benchmark or ""), self.manifest.network
        return benchmark is not None and (network.name != benchmark.network or network.file is not None)

    @property
    def trained_for_it(self) -> bool:
        """Whether the source of all is that of the benchmark; some benchmarks share theirs."""
        trained_on = {run.manifest.benchmark or "" for run in self.runs} - {self.benchmark}
        asked, others = BENCHMARKS.get(self.benchmark), map(BENCHMARKS.get, trained_on)
        return all(asked and other and other.train is asked.train for other in others)

    @property
    def seeds(self) -> list[str]:
        """What tells the runs apart: seeds, or draws, or both where both differ."""
        numbers = [run.identity.repetition for run in self.runs]
        differing = [place for place, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
        return ["-".join(str(number[place]) for place in differing or (-1,)) for number in numbers]

    @property
    def repeated(self) -> str:
        """What they are numbers of: `seed` or, of adapted runs, `draw`."""
        return "draw" if self.adapted_to else "seed"

    @property
    def steps(self) -> int:
        """Of training or, of an adapted run, of adapting."""
        return int((self.manifest.adaptation or self.manifest).settings["steps"])

    def mean(self, domain: str, metric: str) -> float | None:
        """Over the runs that have it."""
        return mean_of_known(rows.get(domain, {}).get(metric, {}).get("value") for rows in self.rows)


def adapted_to(run: RunRecords) -> set[str]:
    """The domains of which it has learned a few images."""
    return {info.target for info in run.manifest.adaptations}


def is_baseline(contender: Contender) -> bool:
    return contender.manifest.method == BASELINE and not contender.changed and not contender.adapted_to


def contenders_of(runs: Sequence[RunRecords], benchmark: str) -> list[Contender]:
    """Runs that differ in nothing but seed or draw are one contender; in the order given, the runs of each by both."""
    together: dict[str, dict[tuple[int, ...], RunRecords]] = {}
    for run in runs:
        group = together.setdefault(run.identity.setting, {})
        other = group.setdefault(run.identity.repetition, run)
        if other is not run:
            which = [run_title(run), *([] if run.identity.from_scratch else [f"seed {run.manifest.seed}"])]
            which += [f"draw {info.draw}" for info in reversed(run.manifest.adaptations)]
            given = f"is the same as {other.folder}: {', '.join(which)}, same settings"
            raise UserError(str(run.folder), given, "each run once")
    groups = [tuple(group[which] for which in sorted(group)) for group in together.values()]
    named = titles([group[0] for group in groups])
    return [Contender(title, group, benchmark) for title, group in zip(named, groups, strict=True)]


def first_answers(
    contenders: Sequence[Contender], benchmark: str, domain: str, kept: Callable[[Outcome], bool] = lambda outcome: True
) -> list[tuple[Contender, Outcome]]:
    """What the first run of each method answered on a domain, as far as it kept what is asked for.

    Runs that were scored on other images than the first of them cannot stand beside it.
    """
    found: list[tuple[Contender, Outcome]] = []
    for contender in contenders:
        outcome = contender.runs[0].outcomes(benchmark).get(domain)
        if outcome is not None and kept(outcome) and (not found or outcome.fingerprint == found[0][1].fingerprint):
            found.append((contender, outcome))
    return found
