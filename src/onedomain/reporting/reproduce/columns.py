"""The columns of a table: how each number follows from a run's records, and from what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from onedomain.evaluation.corruption_error import mean_corruption_error, relative_mean_corruption_error
from onedomain.reporting.average import average, mean
from onedomain.reporting.reproduce.paper import AVERAGE, paper_average, paper_value
from onedomain.reporting.reproduce.rows import Row
from onedomain.runs.identity import Identity


@dataclass(frozen=True)
class RunScores:
    """The records of one run on a table's benchmark, by domain and metric."""

    identity: Identity
    records: dict[str, dict[str, Mapping[str, Any]]]
    adaptation: Mapping[str, Any] | None = None  # how the run was adapted; None if it was only trained
    # Of other rows, by their keys: the runs of the same benchmark and seed.
    beside: Mapping[str, RunScores] = field(default_factory=dict, repr=False, compare=False)

    @property
    def seed(self) -> int:
        return int(self.identity.facts["seed"])

    @property
    def number(self) -> int:
        """The seed or, of an adapted run, the draw."""
        return self.seed if self.adaptation is None else int(self.adaptation["draw"])

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.identity.facts['method']}, seed {self.seed}"

    @property
    def steps(self) -> int:
        """Of training or, of an adapted run, of adapting."""
        return int((self.adaptation or self.any_record)["settings"]["steps"])

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(self.records)

    def score(self, domain: str, metric: str) -> float | None:
        record = self.records.get(domain, {}).get(metric)
        return None if record is None else float(record["value"])

    @property
    def benchmark(self) -> str:
        return str(self.any_record["benchmark"])

    @property
    def any_record(self) -> Mapping[str, Any]:
        """One of them, for what all of them say alike, such as `train_seconds`."""
        return next(iter(next(iter(self.records.values())).values()))

    def fact(self, name: str) -> float | None:
        """What the run says of itself; None in records of before it was told."""
        value = self.any_record.get(name)
        return None if value is None else float(value)


class Column(Protocol):
    """A number of each row, ours and the paper's; `scored` are the domains that all runs of the table have."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def decimals(self) -> int: ...

    @property
    def group(self) -> str:
        """Columns of one group stand together, those of another in a table below: a page is only so wide."""

    @property
    def over(self) -> Sequence[str]:
        """The domains that it is computed of."""

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None: ...

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None: ...


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """How a column is printed."""

    unit: str = "%"
    decimals: int = 2
    group: str = ""


@dataclass(frozen=True)
class Score(_Shown):
    """A metric on one domain, in percent."""

    name: str
    title: str

    @property
    def over(self) -> tuple[str, ...]:
        return (self.name,)

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = run.score(self.name, metric)
        return None if value is None else 100 * value

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_value(row.printed_in(table), row.key, self.name)


@dataclass(frozen=True)
class Average(_Shown):
    """The plain mean over domains, in percent: over those that are scored, on both sides."""

    over: tuple[str, ...]
    name: str = AVERAGE
    title: str = "average"

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = average(run.records, self.domains(scored), metric)
        return None if value is None else 100 * value

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        printed_in, chosen = row.printed_in(table), self.domains(scored)
        printed = paper_value(printed_in, row.key, self.name) if len(chosen) == len(self.over) else None
        return paper_average(printed_in, row.key, chosen) if printed is None else printed

    def domains(self, scored: Sequence[str]) -> list[str]:
        return [domain for domain in self.over if domain in scored]


@dataclass(frozen=True)
class MeanOf(_Shown):
    """The plain mean of other columns; there is none if one of them has no value."""

    columns: tuple[Column, ...]
    name: str
    title: str

    @property
    def over(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(domain for column in self.columns for domain in column.over))

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        return mean(column.value(run, metric, scored) for column in self.columns)

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        whole = set(self.over) <= set(scored)
        printed = paper_value(row.printed_in(table), row.key, self.name) if whole else None
        return mean(column.paper(table, row, scored) for column in self.columns) if printed is None else printed


@dataclass(frozen=True)
class RelativeError(_Shown):
    """mCE: the mean over domains of the error, divided by that of another row's run of the same seed.

    With a domain of clean images it is RmCE: of both errors those on clean images are first taken off.
    """

    over: tuple[str, ...]
    name: str
    title: str
    clean: str = ""
    baseline: str = "erm"  # the key of the row that it is relative to
    unit: str = field(default="", kw_only=True)

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        baseline = run.beside.get(self.baseline)
        if baseline is None:
            return None
        chosen = [domain for domain in self.over if domain in scored]
        own, other = (_errors(each, (*chosen, self.clean), metric) for each in (run, baseline))
        errors = {domain: own[domain] for domain in chosen}
        if not self.clean:
            return mean_corruption_error(errors, other)
        if self.clean not in own or self.clean not in other:
            return None
        return relative_mean_corruption_error(errors, own[self.clean], other, other[self.clean])

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        """As printed: over fewer domains it is another number."""
        return paper_value(row.printed_in(table), row.key, self.name) if set(self.over) <= set(scored) else None


def _errors(run: RunScores, domains: Sequence[str], metric: str) -> dict[str, float]:
    scores = {domain: run.score(domain, metric) for domain in domains}
    return {domain: 1 - score for domain, score in scores.items() if score is not None}


@dataclass(frozen=True)
class Fact(_Shown):
    """What a record says of its run, divided into a handy unit."""

    name: str
    title: str
    of: str
    divisor: float = 1.0
    decimals: int = field(default=1, kw_only=True)
    over: tuple[str, ...] = ()

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = run.fact(self.of)
        return None if value is None else value / self.divisor

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_value(row.printed_in(table), row.key, self.name)
