"""What a table is: a declaration of rows, columns and scales. Nothing here runs anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Protocol

from onedomain.reproduce.paper import AVERAGE, paper_average, paper_value, variant
from onedomain.robustness import mean_corruption_error, relative_mean_corruption_error

PARENT_SEED = 0  # of the trained runs that draws are adapted from


@dataclass(frozen=True)
class RunScores:
    """The records of one run on a table's benchmark, by domain and metric."""

    method: str
    settings: Mapping[str, Any]
    seed: int
    records: Mapping[str, Mapping[str, Mapping[str, Any]]]
    adaptation: Mapping[str, Any] | None = None  # how the run was adapted; None if it was only trained
    # Of other rows, by their keys: the runs of the same benchmark and seed.
    beside: Mapping[str, RunScores] = field(default_factory=dict, repr=False, compare=False)

    @property
    def number(self) -> int:
        """The seed or, of an adapted run, the draw."""
        return self.seed if self.adaptation is None else int(self.adaptation["draw"])

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


@dataclass(frozen=True)
class Adapting:
    """What becomes of a row's trained runs: so many images a class of the target, and the settings that it changes."""

    method: str
    shots: int
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A method, and the settings in which it differs from what the benchmark gives it."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    benchmark: str | None = None  # in a table of several; None: the table's
    tasks: tuple[str, ...] = ()  # benchmarks that it is run on, each by itself: its columns are called TASK/DOMAIN
    adaptation: Adapting | None = None  # of the trained run
    not_run: str = ""  # of a row with the paper's numbers alone: which images of the target it learned

    @property
    def key(self) -> str:
        """Under which the paper's numbers are found.

        >>> Row("SDG", "sdg", adaptation=Adapting("fine-tune", 7)).key
        'sdg>fine-tune-7'
        """
        trained, adapting = variant(self.method, self.settings), self.adaptation
        return f"{trained}>{variant(adapting.method, adapting.settings)}-{adapting.shots}" if adapting else trained

    @property
    def parts(self) -> tuple[Row, ...]:
        """Rows of one benchmark each, which are run."""
        return tuple(replace(self, benchmark=task, tasks=()) for task in self.tasks) or (self,)

    @property
    def trained(self) -> Row:
        """Whose runs are adapted."""
        return replace(self, adaptation=None)

    @property
    def shots(self) -> str:
        """Which images of the target were learned."""
        return str(self.adaptation.shots) if self.adaptation else self.not_run or "0"

    @property
    def name(self) -> str:
        """As a folder is called; rows of one name are one run.

        >>> Row("SDG without L_relax", "sdg", {"beta": 0.0}).name
        'sdg-beta-0'
        >>> Row("ERM", "erm", benchmark="synthia-fog").name
        'synthia-fog-erm'
        """
        plain = self.key.replace(":", "-").replace("=", "-").replace(",", "-").replace(">", "-")
        return f"{self.benchmark}-{plain}" if self.benchmark else plain

    def printed_in(self, table: str) -> str:
        """Where `paper.py` has its numbers: a table of several benchmarks has them under each of these."""
        return self.benchmark or table


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


@dataclass(frozen=True)
class Score:
    """A metric on one domain, in percent."""

    name: str
    title: str
    unit: str = "%"
    decimals: int = 2
    group: str = ""

    @property
    def over(self) -> tuple[str, ...]:
        return (self.name,)

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = run.score(self.name, metric)
        return None if value is None else 100 * value

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_value(row.printed_in(table), row.key, self.name)


@dataclass(frozen=True)
class Average:
    """The plain mean over domains, in percent: over those that are scored, on both sides."""

    over: tuple[str, ...]
    name: str = AVERAGE
    title: str = "average"
    unit: str = "%"
    decimals: int = 2
    group: str = ""

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        values = [run.score(domain, metric) for domain in self.domains(scored)]
        known = [value for value in values if value is not None]
        return 100 * fmean(known) if known and len(known) == len(values) else None

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        printed_in, chosen = row.printed_in(table), self.domains(scored)
        printed = paper_value(printed_in, row.key, self.name) if len(chosen) == len(self.over) else None
        return paper_average(printed_in, row.key, chosen) if printed is None else printed

    def domains(self, scored: Sequence[str]) -> list[str]:
        return [domain for domain in self.over if domain in scored]


@dataclass(frozen=True)
class MeanOf:
    """The plain mean of other columns; there is none if one of them has no value."""

    columns: tuple[Column, ...]
    name: str
    title: str
    unit: str = "%"
    decimals: int = 2
    group: str = ""

    @property
    def over(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(domain for column in self.columns for domain in column.over))

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        return _mean([column.value(run, metric, scored) for column in self.columns])

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        whole = set(self.over) <= set(scored)
        printed = paper_value(row.printed_in(table), row.key, self.name) if whole else None
        return _mean([column.paper(table, row, scored) for column in self.columns]) if printed is None else printed


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


@dataclass(frozen=True)
class RelativeError:
    """mCE: the mean over domains of the error, divided by that of another row's run of the same seed.

    With a domain of clean images it is RmCE: of both errors those on clean images are first taken off.
    """

    over: tuple[str, ...]
    name: str
    title: str
    clean: str = ""
    baseline: str = "erm"  # the key of the row that it is relative to
    unit: str = ""
    decimals: int = 2
    group: str = ""

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
class Fact:
    """What a record says of its run, divided into a handy unit."""

    name: str
    title: str
    unit: str
    of: str
    divisor: float = 1.0
    decimals: int = 1
    group: str = ""
    over: tuple[str, ...] = ()

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = run.fact(self.of)
        return None if value is None else value / self.divisor

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_value(row.printed_in(table), row.key, self.name)


@dataclass(frozen=True)
class Scale:
    """How much of the protocol is run: a share of each method's steps, and what else is made smaller, by method."""

    name: str
    share: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    network: str = ""  # in the place of the benchmark's
    benchmark: str = ""  # in the place of the table's, for rows that name none
    note: str = ""  # what is reduced; empty for the whole protocol

    @property
    def reduced(self) -> bool:
        return bool(self.note)


@dataclass(frozen=True)
class Table:
    """One table: methods on a benchmark, and what is reported of them. The paper's numbers are in `paper.py`."""

    name: str
    title: str
    benchmark: str  # of the rows that name no other
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    metric: str = "accuracy"
    notes: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()  # its own, in the place of the common ones of the same name

    def benchmark_of(self, row: Row) -> str:
        return row.benchmark or self.benchmark

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Those of its rows, each once, in their order."""
        return tuple(dict.fromkeys(map(self.benchmark_of, self.grid)))

    @property
    def grid(self) -> tuple[Row, ...]:
        """What is run: rows of one benchmark each, once, and before those that are adapted what they come from."""
        parts = [part for row in self.rows if not row.not_run for part in row.parts]
        return tuple({row.name: row for row in (*(part.trained for part in parts), *parts)}.values())

    @property
    def few_shot(self) -> bool:
        return any(row.adaptation for row in self.rows)

    def seeds_of(self, row: Row, seeds: Sequence[int]) -> tuple[int, ...]:
        """Where runs are adapted, seeds are those of the draws, and all draws share one trained run."""
        return (PARENT_SEED,) if self.few_shot and row.adaptation is None else tuple(seeds)

    def at(self, scale: Scale) -> tuple[Table, Scale]:
        """The table and the scale as it is run at it: maybe on another benchmark, which its title then says."""
        own = next((each for each in self.scales if each.name == scale.name), scale)
        if own.benchmark in ("", self.benchmark):
            return self, own
        return replace(self, benchmark=own.benchmark, title=f"{self.title}, on {own.benchmark}"), own
