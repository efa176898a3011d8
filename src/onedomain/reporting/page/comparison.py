"""Runs of one benchmark side by side: a row a method, with several seeds averaged, and a column a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.reporting.grouping import adapted_to
from onedomain.reporting.page.contenders import Contender, contenders_of, trained_for
from onedomain.reporting.page.estimates import Estimate, average, too_close, variance_of_images
from onedomain.reporting.reproduce.paper import paper_average, paper_value, variant
from onedomain.reporting.shown_metric import ACCURACY, ShownMetric, shown_metric
from onedomain.runs.records import RunRecords

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
    adapted_to: bool  # by some of the runs: a few of its images were learned
    in_all: bool  # whether every run was scored on it

    @property
    def role(self) -> str:
        if self.unseen:
            return "unseen"
        return "adapted to" if self.adapted_to else "the source, held out"

    @property
    def compared(self) -> bool:
        """Whether it counts in the average over unseen domains."""
        return self.unseen and self.same_images and self.in_all


@dataclass(frozen=True)
class Comparison:
    """All methods that were scored on one benchmark; `contenders` with the best average over unseen domains first.

    Those that were adapted to one of these domains come last.
    """

    benchmark: str
    columns: tuple[Column, ...]
    contenders: tuple[Contender, ...]
    metric: ShownMetric = ACCURACY

    @property
    def unseen(self) -> list[Column]:
        return [column for column in self.columns if column.unseen]

    @property
    def sources(self) -> list[Column]:
        return [column for column in self.columns if not (column.unseen or column.adapted_to)]

    @property
    def adapted_to(self) -> list[Column]:
        """Targets that none of the runs met without having learned some images of them."""
        return [column for column in self.columns if column.adapted_to and not column.unseen]

    @property
    def rivals(self) -> list[Contender]:
        """Those to whom all domains of the average are unseen: others are not to be ranked with them."""
        return [each for each in self.contenders if not each.adapted_to.intersection(self.compared)]

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
        """The shown metric on a domain, or the average over several; None if one of them was not scored."""
        if isinstance(domains, str):
            found = self._rows(contender, domains)
            if not found:
                return None
            of_images = fmean(variance_of_images(row["low"], row["high"]) for row in found)
            return Estimate(tuple(row["value"] for row in found), of_images)
        estimates = [self.estimate(contender, part) for part in domains]
        known = [estimate for estimate in estimates if estimate is not None]
        return average(known, self.corrupted) if known and len(known) == len(estimates) else None

    def interval(self, contender: Contender, domain: str) -> tuple[float, float] | None:
        """Of the shown metric, over images, as it was recorded; None for several runs."""
        found = self._rows(contender, domain)
        return (found[0]["low"], found[0]["high"]) if len(found) == 1 else None

    def _rows(self, contender: Contender, domain: str) -> list[Mapping[str, Any]]:
        return [rows[domain][self.metric.name] for rows in contender.rows if domain in rows]

    def mean(self, contender: Contender, metric: str) -> float | None:
        """Of any metric, over the same domains; None if one of them lacks it."""
        values = [contender.mean(domain, metric) for domain in self.compared]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    def mark(self, contender: Contender, domains: Domains) -> str:
        """In its column `best`, `close` if chance may explain that it is not, or nothing.

        Only those are compared to whom the domains are as new: runs that were adapted to one of them have no mark.
        """
        alike = [each for each in self.contenders if not each.adapted_to.intersection(_each(domains))]
        if contender not in alike:
            return ""
        if len(alike) == 1 or any(each.name == domains and not each.same_images for each in self.columns):
            return ""
        scored = [self.estimate(each, domains) for each in alike]
        own = self.estimate(contender, domains)
        if own is None:
            return ""
        best = max((estimate for estimate in scored if estimate is not None), key=lambda estimate: estimate.mean)
        if own.mean == best.mean:
            return "best"
        return "close" if too_close(own, best) else ""

    def paper(self, contender: Contender, domains: Domains) -> float | None:
        """The paper's accuracy or mIoU, or its average over the same domains, in %; None where it says nothing."""
        if contender.adapted_to or contender.other_network:
            return None
        if not all(trained_for(run, self.benchmark) for run in contender.runs):
            return None
        name = variant(contender.method, contender.changed)
        if isinstance(domains, str):
            return paper_value(self.benchmark, name, domains)
        return paper_average(self.benchmark, name, [domain for domain in domains if isinstance(domain, str)])


def _each(domains: Domains) -> list[str]:
    """
    >>> _each((("fog-1", "fog-2"), "snow-1"))
    ['fog-1', 'fog-2', 'snow-1']
    """
    return [domains] if isinstance(domains, str) else [domain for part in domains for domain in _each(part)]


def compare(runs: Sequence[RunRecords], benchmark: str) -> Comparison:
    """All runs that were scored on the benchmark."""
    chosen = [run for run in runs if run.scores(benchmark)]
    metric = shown_metric(chosen, benchmark)
    for run in chosen:
        for needed in dict.fromkeys((ACCURACY.name, metric.name)):
            refuse_old_records(run, benchmark, needed)
    comparison = Comparison(benchmark, _columns(chosen, benchmark), tuple(contenders_of(chosen, benchmark)), metric)

    def rank(contender: Contender) -> tuple[bool, float]:
        estimate = comparison.average(contender)
        return contender in comparison.rivals, -1.0 if estimate is None else estimate.mean

    return replace(comparison, contenders=tuple(sorted(comparison.contenders, key=rank, reverse=True)))


def refuse_old_records(run: RunRecords, benchmark: str, metric: str = ACCURACY.name) -> None:
    """Records of an earlier form lack what is shown here: scoring again writes it."""
    for domain, metrics in run.scores(benchmark).items():
        missing = [name for name in (*OF_THE_DOMAIN, *OF_THE_RUN) if name not in metrics.get(metric, {})]
        if missing:
            given = f"the record of {metric} on {domain} has no {missing[0]!r}"
            raise UserError(str(run.folder), given, f"records of this version: {run.evaluate_command(benchmark)}")


def _columns(runs: Sequence[RunRecords], benchmark: str) -> tuple[Column, ...]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    new: dict[str, list[bool]] = {}  # of the runs that were not adapted to it: whether it was unseen
    for run in runs:
        for domain, metrics in run.scores(benchmark).items():
            found.setdefault(domain, []).append(metrics["accuracy"])
            new.setdefault(domain, [])
            if domain not in adapted_to(run):
                new[domain].append(metrics["accuracy"]["unseen"])
    return tuple(
        Column(
            name=domain,
            unseen=bool(new[domain]) and all(new[domain]),
            split=rows[0]["split"],
            count=rows[0]["count"],
            note=rows[0]["note"],
            fingerprint=rows[0]["data"],
            same_images=len({row["data"] for row in rows}) == 1,
            adapted_to=len(new[domain]) < len(rows),
            in_all=len(rows) == len(runs),
        )
        for domain, rows in found.items()
    )
