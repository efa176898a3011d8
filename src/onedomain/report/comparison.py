"""Runs of one benchmark side by side: a row a method, with several seeds averaged, and a column a domain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names
from onedomain.records import RunRecords
from onedomain.report.estimates import Estimate, average, too_close, variance_of_images
from onedomain.reproduce.paper import paper_average, paper_value, setting_text, variant

BASELINE = "erm"
BOOKKEEPING = ("checkpoint_every", "log_every")  # settings that change no result
NEEDED = ("value", "low", "high", "count", "note", "split", "unseen", "data", "date")  # of a record of accuracy
NEEDED += ("parameters", "training_parameters", "train_seconds", "peak_memory_mb")


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
class Contender:
    """A method with its settings, in as many runs as there are seeds."""

    title: str
    method: str
    changed: Mapping[str, Any]  # settings that differ from the benchmark's, steps apart
    steps: int
    usual_steps: int | None  # of this method on the benchmark it was trained on; None if either is not the library's
    runs: tuple[RunRecords, ...] = field(repr=False)
    rows: tuple[Mapping[str, Mapping[str, Mapping[str, Any]]], ...] = field(repr=False)  # of each run: domain, metric

    @property
    def seeds(self) -> list[int]:
        return [run.manifest.seed for run in self.runs]

    @property
    def reduced(self) -> bool:
        """Whether it was trained for fewer steps than the benchmark's protocol says."""
        return self.usual_steps is not None and self.steps < self.usual_steps

    def accuracy(self, domain: str) -> Estimate | None:
        """None if no run was scored on the domain."""
        found = [rows[domain]["accuracy"] for rows in self.rows if domain in rows]
        if not found:
            return None
        of_images = fmean(variance_of_images(row["low"], row["high"]) for row in found)
        return Estimate(tuple(row["value"] for row in found), of_images)

    def interval(self, domain: str) -> tuple[float, float] | None:
        """Of the accuracy, over images, as it was recorded; None for several runs."""
        found = [rows[domain]["accuracy"] for rows in self.rows if domain in rows]
        return (found[0]["low"], found[0]["high"]) if len(found) == 1 else None

    def mean(self, domain: str, metric: str) -> float | None:
        """Over the runs that have it."""
        values = [rows[domain][metric]["value"] for rows in self.rows if metric in rows.get(domain, {})]
        return fmean(values) if values else None


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

    def average(self, contender: Contender) -> Estimate | None:
        """Over the unseen domains that all have; None if there is none."""
        return average_over(contender, self.compared)

    def mean(self, contender: Contender, metric: str) -> float | None:
        """Of any metric, over the same domains; None if one of them lacks it."""
        values = [contender.mean(domain, metric) for domain in self.compared]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    def mark(self, contender: Contender, domain: str | None) -> str:
        """In its column (None: the average) `best`, `close` if chance may explain that it is not, or nothing."""
        if len(self.contenders) == 1:
            return ""
        scored = [self.average(each) if domain is None else each.accuracy(domain) for each in self.contenders]
        own = self.average(contender) if domain is None else contender.accuracy(domain)
        if own is None:
            return ""
        best = max((estimate for estimate in scored if estimate is not None), key=lambda estimate: estimate.mean)
        if own.mean == best.mean:
            return "best"
        return "close" if too_close(own, best) else ""

    def paper(self, contender: Contender, domain: str | None) -> float | None:
        """The paper's accuracy (None: its average over the same domains) in %; None where it says nothing."""
        if any(run.manifest.benchmark != self.benchmark for run in contender.runs):
            return None
        name = variant(contender.method, contender.changed)
        if domain is None:
            return paper_average(self.benchmark, name, self.compared)
        return paper_value(self.benchmark, name, domain)


def average_over(contender: Contender, domains: Sequence[str]) -> Estimate | None:
    estimates = [contender.accuracy(domain) for domain in domains]
    known = [estimate for estimate in estimates if estimate is not None]
    return average(known) if known and len(known) == len(estimates) else None


def compare(runs: Sequence[RunRecords], benchmark: str) -> Comparison:
    """All runs that were scored on the benchmark. Runs that differ in nothing but the seed are one contender."""
    chosen = [run for run in runs if benchmark in run.benchmarks]
    for run in chosen:
        refuse_old_records(run, benchmark)
    groups: dict[str, list[RunRecords]] = {}
    for run in chosen:
        group = groups.setdefault(json.dumps([run.manifest.method, _facets(run)], sort_keys=True), [])
        for other in group:
            if other.manifest.seed == run.manifest.seed:
                given = f"is the same as {other.folder}: {run.manifest.method}, seed {run.manifest.seed}, same settings"
                raise UserError(str(run.folder), given, "each run once")
        group.append(run)
    titles = _titles(list(groups.values()))
    contenders = [_contender(group, title, benchmark) for group, title in zip(groups.values(), titles, strict=True)]
    comparison = Comparison(benchmark, _columns(chosen, benchmark), tuple(contenders))

    def rank(contender: Contender) -> float:
        estimate = comparison.average(contender)
        return -1.0 if estimate is None else estimate.mean

    return Comparison(benchmark, comparison.columns, tuple(sorted(contenders, key=rank, reverse=True)))


def refuse_old_records(run: RunRecords, benchmark: str) -> None:
    """Records of an earlier form lack what is shown here: scoring again writes it."""
    for domain, metrics in run.scores(benchmark).items():
        missing = [name for name in NEEDED if name not in metrics.get("accuracy", {})]
        if missing:
            given = f"the record of accuracy on {domain} has no {missing[0]!r}"
            raise UserError(str(run.folder), given, f"records of this version: {run.evaluate_command(benchmark)}")


def method_title(method: str) -> str:
    """How the method's class spells it, with the hyphens of its name: d-sne is D-SNE, uncertain-sdg Uncertain-SDG."""
    if method not in method_names():
        return method
    letters = iter(method_class(method).__name__)
    return "".join("-" if letter == "-" else next(letters) for letter in method)


def usual_settings(run: RunRecords) -> dict[str, Any]:
    """What the run's benchmark sets its method to; empty for a method that is not the library's."""
    method = run.manifest.method
    if method not in method_names():
        return {}
    kind = method_class(method)
    benchmark = BENCHMARKS.get(run.manifest.benchmark or "")
    return kind(**(benchmark.settings.get(method, {}) if benchmark else {})).settings.model_dump(mode="json")


def changed_settings(run: RunRecords) -> dict[str, Any]:
    """What was set otherwise, as far as it changes a result."""
    usual = usual_settings(run)
    return {
        name: value
        for name, value in run.manifest.settings.items()
        if name not in BOOKKEEPING and (name not in usual or usual[name] != value)
    }


def _contender(runs: Sequence[RunRecords], title: str, benchmark: str) -> Contender:
    ordered = sorted(runs, key=lambda run: run.manifest.seed)
    first = ordered[0]
    changed = changed_settings(first)
    changed.pop("steps", None)
    return Contender(
        title,
        first.manifest.method,
        changed,
        first.manifest.settings["steps"],
        usual_settings(first).get("steps") if first.manifest.benchmark in BENCHMARKS else None,
        tuple(ordered),
        tuple(run.scores(benchmark) for run in ordered),
    )


def _facets(run: RunRecords) -> dict[str, Any]:
    """All that must be equal for two runs to differ in their seeds alone."""
    manifest = run.manifest
    settings = {name: value for name, value in manifest.settings.items() if name not in BOOKKEEPING}
    network = manifest.network.model_dump(mode="json")
    data = {"trained on": manifest.benchmark or manifest.source.name, "source": manifest.source.fingerprint}
    return settings | {"network": network["name"] or network["own"], "layers": network} | data


def _titles(groups: Sequence[Sequence[RunRecords]]) -> list[str]:
    """The method's name, with what tells it apart if there are several of it."""
    titles = []
    for group in groups:
        method = group[0].manifest.method
        facets = _facets(group[0])
        others = [_facets(other[0]) for other in groups if other[0].manifest.method == method]
        differing = [name for name in facets if any(other.get(name) != facets[name] for other in others)]
        telling = [name for name in differing if name not in ("layers", "source")] or differing
        usual = usual_settings(group[0])
        words = [_words(name, facets[name]) for name in telling if name not in usual or usual[name] != facets[name]]
        titles.append(", ".join([method_title(method), *words]))
    return titles


def _words(facet: str, value: Any) -> str:
    if facet == "trained on":
        return f"trained on {value}"
    if facet in ("network", "source"):
        return f"{facet} {value}"
    if facet == "layers":
        return f"embedding {value['embedding']}, perturbing {' '.join(value['perturb']) or 'nothing'}"
    return f"{facet}={setting_text(value)}"


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
