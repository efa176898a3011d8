"""Runs of one benchmark side by side: a row a method, with several seeds averaged, and a column a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.records import RunRecords
from onedomain.report.contenders import Contender, contenders_of, trained_for
from onedomain.report.estimates import Estimate, average, too_close
from onedomain.reproduce.paper import paper_average, paper_value, variant

OF_THE_DOMAIN = ("value", "low", "high", "count", "note", "split", "unseen", "data", "date")
Domains = str | tuple["Domains", ...]  # one, or several whose accuracies are averaged, which may be averages too
OF_THE_RUN = ("parameters", "training_parameters", "train_seconds", "peak_memory_mb")


@dataclass(frozen=True)
class Column:
    """A domain that was scored. `same_images` says whether all runs saw the same ones: else they do not compare."""

    name: str
    unseen: bool
    split: str
    count: int
    note: str
    fingerprint: str
    same_images: bool
    in_all: bool  # whether every run was scored on it

    @property
    def compared(self) -> bool:
        """Whether it counts in the average over unseen domains."""
        return self.unseen and self.same_images and self.in_all


@dataclass(frozen=True)
class Comparison:
    """All methods that were scored on one benchmark; `contenders` with the best average over unseen domains first."""

    benchmark: str
    columns: tuple[Column, ...]
    contenders: tuple[Contender, ...]

    @property
    def unseen(self) -> list[Column]:
        return [column for column in self.columns if column.unseen]

    @property
    def sources(self) -> list[Column]:
        return [column for column in self.columns if not column.unseen]

    @cached_property
    def compared(self) -> list[str]:
        """The unseen domains that every run was scored on, on the same images."""
        return [column.name for column in self.columns if column.compared]

    @property
    def corrupted(self) -> bool:
        """Whether the unseen domains are corruptions × severities of the same images."""
        known = BENCHMARKS.get(self.benchmark)
        return known is not None and known.corruptions

    def average(self, contender: Contender) -> Estimate | None:
        """Over the unseen domains that all have; None if there is none."""
        return self.estimate(contender, tuple(self.compared))

    def estimate(self, contender: Contender, domains: Domains) -> Estimate | None:
        """The accuracy on a domain, or the average over several; None if one of them was not scored."""
        if isinstance(domains, str):
            return contender.accuracy(domains)
        estimates = [self.estimate(contender, part) for part in domains]
        known = [estimate for estimate in estimates if estimate is not None]
        return average(known, self.corrupted) if known and len(known) == len(estimates) else None

    def mean(self, contender: Contender, metric: str) -> float | None:
        """Of any metric, over the same domains; None if one of them lacks it."""
        values = [contender.mean(domain, metric) for domain in self.compared]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    def mark(self, contender: Contender, domains: Domains) -> str:
        """In its column `best`, `close` if chance may explain that it is not, or nothing."""
        if len(self.contenders) == 1 or any(each.name == domains and not each.same_images for each in self.columns):
            return ""
        scored = [self.estimate(each, domains) for each in self.contenders]
        own = self.estimate(contender, domains)
        if own is None:
            return ""
        best = max((estimate for estimate in scored if estimate is not None), key=lambda estimate: estimate.mean)
        if own.mean == best.mean:
            return "best"
        return "close" if too_close(own, best) else ""

    def paper(self, contender: Contender, domains: Domains) -> float | None:
        """The paper's accuracy, or its average over the same domains, in %; None where it says nothing."""
        if not all(trained_for(run, self.benchmark) for run in contender.runs):
            return None
        name = variant(contender.method, contender.changed)
        if isinstance(domains, str):
            return paper_value(self.benchmark, name, domains)
        return paper_average(self.benchmark, name, [domain for domain in domains if isinstance(domain, str)])


def compare(runs: Sequence[RunRecords], benchmark: str) -> Comparison:
    """All runs that were scored on the benchmark."""
    chosen = [run for run in runs if run.scores(benchmark)]
    for run in chosen:
        refuse_old_records(run, benchmark)
    comparison = Comparison(benchmark, _columns(chosen, benchmark), tuple(contenders_of(chosen, benchmark)))

    def rank(contender: Contender) -> float:
        estimate = comparison.average(contender)
        return -1.0 if estimate is None else estimate.mean

    return replace(comparison, contenders=tuple(sorted(comparison.contenders, key=rank, reverse=True)))


def refuse_old_records(run: RunRecords, benchmark: str) -> None:
    """Records of an earlier form lack what is shown here: scoring again writes it."""
    for domain, metrics in run.scores(benchmark).items():
        missing = [name for name in (*OF_THE_DOMAIN, *OF_THE_RUN) if name not in metrics.get("accuracy", {})]
        if missing:
            given = f"the record of accuracy on {domain} has no {missing[0]!r}"
            raise UserError(str(run.folder), given, f"records of this version: {run.evaluate_command(benchmark)}")


def _columns(runs: Sequence[RunRecords], benchmark: str) -> tuple[Column, ...]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for domain, metrics in run.scores(benchmark).items():
            found.setdefault(domain, []).append(metrics["accuracy"])
    return tuple(
        Column(
            name=domain,
            unseen=all(row["unseen"] for row in rows),
            split=rows[0]["split"],
            count=rows[0]["count"],
            note=rows[0]["note"],
            fingerprint=rows[0]["data"],
            same_images=len({row["data"] for row in rows}) == 1,
            in_all=len(rows) == len(runs),
        )
        for domain, rows in found.items()
    )
