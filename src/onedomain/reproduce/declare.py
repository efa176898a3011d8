"""What a table is: a declaration of rows, columns and scales. Nothing here runs anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

from onedomain.reproduce.paper import AVERAGE, paper_average, paper_value, variant


@dataclass(frozen=True)
class RunScores:
    """The records of one run on a table's benchmark, by domain and metric."""

    method: str
    settings: Mapping[str, Any]
    seed: int
    records: Mapping[str, Mapping[str, Mapping[str, Any]]]

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
class Row:
    """A method, and the settings in which it differs from what the benchmark gives it."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    benchmark: str | None = None  # in a table of several; None: the table's

    @property
    def key(self) -> str:
        """Under which the paper's numbers are found."""
        return variant(self.method, self.settings)

    @property
    def name(self) -> str:
        """As a folder is called; rows of one name are one run.

        >>> Row("SDG without L_relax", "sdg", {"beta": 0.0}).name
        'sdg-beta-0'
        >>> Row("ERM", "erm", benchmark="synthia-fog").name
        'synthia-fog-erm'
        """
        plain = self.key.replace(":", "-").replace("=", "-").replace(",", "-")
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

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None: ...

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None: ...


@dataclass(frozen=True)
class Score:
    """A metric on one domain, in percent."""

    name: str
    title: str
    unit: str = "%"
    decimals: int = 2

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

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        values = [run.score(domain, metric) for domain in self.domains(scored)]
        known = [value for value in values if value is not None]
        return 100 * fmean(known) if known else None

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_average(row.printed_in(table), row.key, self.domains(scored))

    def domains(self, scored: Sequence[str]) -> list[str]:
        return [domain for domain in self.over if domain in scored]


@dataclass(frozen=True)
class Fact:
    """What a record says of its run, divided into a handy unit."""

    name: str
    title: str
    unit: str
    of: str
    divisor: float = 1.0
    decimals: int = 1

    def value(self, run: RunScores, metric: str, scored: Sequence[str]) -> float | None:
        value = run.fact(self.of)
        return None if value is None else value / self.divisor

    def paper(self, table: str, row: Row, scored: Sequence[str]) -> float | None:
        return paper_value(row.printed_in(table), row.key, self.name)


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
        return tuple(dict.fromkeys(map(self.benchmark_of, self.rows)))

    def at(self, scale: Scale) -> Scale:
        """The scale of this name as the table has it."""
        return next((own for own in self.scales if own.name == scale.name), scale)


@dataclass(frozen=True)
class Scale:
    """How much of the protocol is run: a share of each method's steps, and what else is made smaller, by method."""

    name: str
    share: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    network: str | None = None  # in the place of the benchmark's
    note: str = ""  # what is reduced; empty for the whole protocol

    @property
    def reduced(self) -> bool:
        return bool(self.note)
