"""The columns of a table: how each number follows from a run's records, and from what the paper prints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onedomain.data.corruptions import SEVERITIES
from onedomain.evaluation.corruption_error import Robustness, from_records
from onedomain.reporting.average import average, mean
from onedomain.reporting.reproduce.paper import AVERAGE, paper_average, paper_value
from onedomain.runs.identity import Identity

WORST = SEVERITIES[-1]  # the severity of the paper's Table 4
CLEAN = "cifar10"  # the domain of clean images beside corrupted ones


@dataclass(frozen=True)
class RunScores:
    """The records of one run on a table's benchmark, by domain and metric; `metric` is the table's."""

    identity: Identity
    metric: str
    records: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def any_record(self) -> Mapping[str, Any]:
        """One of them, for what all of them say alike, such as `train_seconds`."""
        return next(iter(next(iter(self.records.values())).values()))

    @property
    def adaptation(self) -> Mapping[str, Any] | None:
        """How the run was adapted; None if it was only trained."""
        return self.any_record.get("adaptation")

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
    def benchmark(self) -> str:
        return str(self.any_record["benchmark"])


@dataclass(frozen=True)
class Column(ABC):
    """A number of each row, ours and the paper's.

    `over` are the domains that it is computed of. Columns of one `group` stand together, those of another in a table
    below: a page is only so wide. `baseline` is the key of the row that it is relative to.
    """

    name: str
    title: str
    over: tuple[str, ...] = ()
    unit: str = field(default="%", kw_only=True)
    decimals: int = field(default=2, kw_only=True)
    group: str = field(default="", kw_only=True)
    baseline: str = field(default="", kw_only=True)

    @abstractmethod
    def value(self, run: RunScores, scored: Sequence[str], baseline: RunScores | None = None) -> float | None:
        """`scored` are the domains that all runs of the table have, `baseline` the run that this is relative to."""

    def paper(self, table: str, method: str, scored: Sequence[str]) -> float | None:
        """As printed: over fewer domains it is another number."""
        return paper_value(table, method, self.name) if set(self.over) <= set(scored) else None


@dataclass(frozen=True)
class Average(Column):
    """The plain mean over domains, in percent: over those that are scored, on both sides."""

    def value(self, run: RunScores, scored: Sequence[str], baseline: RunScores | None = None) -> float | None:
        value = average(run.records, self._domains(scored), run.metric)
        return None if value is None else 100 * value

    def paper(self, table: str, method: str, scored: Sequence[str]) -> float | None:
        printed = super().paper(table, method, scored)
        return paper_average(table, method, self._domains(scored)) if printed is None else printed

    def _domains(self, scored: Sequence[str]) -> list[str]:
        """A single domain is a column of its own, whatever other runs lack."""
        return [domain for domain in self.over if domain in scored or len(self.over) == 1]


def score(name: str, title: str, group: str = "") -> Column:
    """A metric on one domain, in percent."""
    return Average(name, title, (name,), group=group)


def average_over(*scores: Column) -> Column:
    """The average of such columns."""
    return Average(AVERAGE, "average", tuple(each.name for each in scores))


@dataclass(frozen=True)
class MeanOf(Column):
    """The plain mean of other columns; there is none if one of them has no value."""

    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        over = dict.fromkeys(domain for column in self.columns for domain in column.over)
        object.__setattr__(self, "over", tuple(over))

    def value(self, run: RunScores, scored: Sequence[str], baseline: RunScores | None = None) -> float | None:
        return mean(column.value(run, scored) for column in self.columns)

    def paper(self, table: str, method: str, scored: Sequence[str]) -> float | None:
        printed = super().paper(table, method, scored)
        return mean(column.paper(table, method, scored) for column in self.columns) if printed is None else printed


@dataclass(frozen=True)
class RelativeError(Column):
    """mCE or, as `rmce`, RmCE: errors at the worst severity by those of another row's run of the same seed."""

    unit: str = field(default="", kw_only=True)
    baseline: str = field(default="erm", kw_only=True)

    def value(self, run: RunScores, scored: Sequence[str], baseline: RunScores | None = None) -> float | None:
        if baseline is None:
            return None
        chosen = {CLEAN, *(domain for domain in self.over if domain in scored)}

        def robustness(of: RunScores) -> Robustness:
            rows = [row for name, metrics in of.records.items() if name in chosen for row in metrics.values()]
            return from_records(rows, of.benchmark)

        return robustness(run).relative_to(robustness(baseline), WORST)[self.name]


@dataclass(frozen=True)
class Fact(Column):
    """What a record says of its run, divided into a handy unit; old records do not say all."""

    of: str = ""
    divisor: float = 1.0
    decimals: int = field(default=1, kw_only=True)

    def value(self, run: RunScores, scored: Sequence[str], baseline: RunScores | None = None) -> float | None:
        value = run.any_record.get(self.of)
        return None if value is None else value / self.divisor
