"""Runs of one benchmark side by side: one row per method, with several seeds averaged, and one column per domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from onedomain.benchmarks import BENCHMARKS
from onedomain.data.corruptions import CATEGORIES, Corruption
from onedomain.errors import UserError
from onedomain.reporting.average import average, fingerprint, mean, shared_domains
from onedomain.reporting.contenders import Contender, adapted_to, contenders_of
from onedomain.reporting.estimates import Estimate, over_domains, too_close, variance_of_images
from onedomain.reporting.reproduce.paper import paper_average, paper_value, variant
from onedomain.reporting.shown_metric import ACCURACY, ShownMetric, shown_metric
from onedomain.runs.records import RunRecords

Domains = str | tuple["Domains", ...]  # one, or several whose accuracies are averaged, which may be averages too
OF_THE_DOMAIN = ("value", "low", "high", "count", "note", "split", "unseen", "data", "date")
OF_THE_RUN = ("parameters", "training_parameters", "train_seconds", "peak_memory_mb")


@dataclass(frozen=True)
class Column:
    """A domain that was scored. `same_images` says whether all runs saw the same ones: else they do not compare.

    Where there are runs that were only trained, `same_images` and `in_all` are about these.
    """

    name: str
    unseen: bool
    split: str
    count: int
    note: str
    fingerprint: str
    same_images: bool
    adapted_to: bool  # by some of the runs: a few of its images were learned
    in_all: bool  # whether every one was scored on it
    compared: bool  # whether it counts in the average over unseen domains
    corruption: Corruption | None  # that its images are under

    @property
    def role(self) -> str:
        if self.unseen:
            return "unseen"
        return "adapted to" if self.adapted_to else "the source, held out"


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

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Of corruptions, which are many: those of each category that count in the average; else none."""
        compared = [(each.name, each.corruption.kind) for each in self.columns if each.compared and each.corruption]
        found = {
            category: tuple(name for name, kind in compared if kind in kinds)
            for category, kinds in (CATEGORIES.items() if self.corrupted else ())
        }
        return {category: domains for category, domains in found.items() if domains}

    def average(self, contender: Contender) -> Estimate | None:
        """Over the unseen domains that all have; None if there is none."""
        return self.estimate(contender, tuple(self.compared))

    def averages(self, contender: Contender) -> list[float]:
        """The same of each run, as numbers alone."""
        each = [average(rows, self.compared, self.metric.name) for rows in contender.rows]
        return [value for value in each if value is not None]

    def estimate(self, contender: Contender, domains: Domains) -> Estimate | None:
        """The shown metric on a domain, or the average over several; None if one of them was not scored."""
        if isinstance(domains, str):
            every = (rows.get(domains, {}).get(self.metric.name) for rows in contender.rows)
            found = [row for row in every if row]
            if not found:
                return None
            edges = [(row.get("low", row["value"]), row.get("high", row["value"])) for row in found]
            of_images = fmean(variance_of_images(low, high) for low, high in edges)
            recorded = edges[0] if len(found) == 1 and "low" in found[0] else None
            return Estimate(tuple(row["value"] for row in found), of_images, recorded)
        estimates = [self.estimate(contender, part) for part in domains]
        known = [estimate for estimate in estimates if estimate is not None]
        return over_domains(known, self.corrupted) if known and len(known) == len(estimates) else None

    def mean(self, contender: Contender, metric: str) -> float | None:
        """Of any metric, over the same domains; None if one of them lacks it."""
        return mean(contender.mean(domain, metric) for domain in self.compared)

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
        if contender.adapted_to or contender.other_network or not contender.trained_for_it:
            return None
        name = variant(contender.manifest.method, contender.changed)
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
    comparison = Comparison(benchmark, _columns(chosen, benchmark), tuple(contenders_of(chosen, benchmark)), metric)

    def rank(contender: Contender) -> tuple[bool, float]:
        averages = comparison.averages(contender)
        return contender in comparison.rivals, fmean(averages) if averages else -1.0

    return replace(comparison, contenders=tuple(sorted(comparison.contenders, key=rank, reverse=True)))


def refuse_old_records(comparison: Comparison) -> None:
    """Records of an earlier form lack what the page shows: scoring again writes it."""
    for run in (run for contender in comparison.contenders for run in contender.runs):
        for domain, metrics in run.scores(comparison.benchmark).items():
            for metric in dict.fromkeys((ACCURACY.name, comparison.metric.name)):
                missing = [name for name in OF_THE_DOMAIN + OF_THE_RUN if name not in metrics.get(metric, {})]
                if missing:
                    given = f"the record of {metric} on {domain} has no {missing[0]!r}"
                    again = run.evaluate_command(comparison.benchmark)
                    raise UserError(str(run.folder), given, f"records of this version: {again}")


def _columns(runs: Sequence[RunRecords], benchmark: str) -> tuple[Column, ...]:
    every = [run.scores(benchmark) for run in runs]
    # One adapted run is scored on fewer images, and fewer domains, than those that it stands beside.
    judged = [scores for run, scores in zip(runs, every, strict=True) if not adapted_to(run)] or every
    shared = shared_domains(judged)
    columns = []
    for domain in dict.fromkeys(domain for scores in every for domain in scores):
        scored = [(run, scores[domain]) for run, scores in zip(runs, every, strict=True) if domain in scores]
        first = next(iter(scored[0][1].values()))
        # Of the runs that were not adapted to it: whether it was unseen.
        new = [next(iter(metrics.values()))["unseen"] for run, metrics in scored if domain not in adapted_to(run)]
        unseen = bool(new) and all(new)
        compared_on = [scores[domain] for scores in judged if domain in scores]
        columns.append(
            Column(
                name=domain,
                unseen=unseen,
                split=first.get("split", ""),
                count=first.get("count", 0),
                note=first.get("note", ""),
                fingerprint=first["data"],
                same_images=len({fingerprint(metrics) for metrics in compared_on}) <= 1,
                adapted_to=len(new) < len(scored),
                in_all=len(compared_on) == len(judged),
                compared=unseen and domain in shared,
                corruption=Corruption(first["corruption"], first["severity"]) if "corruption" in first else None,
            )
        )
    return tuple(columns)
