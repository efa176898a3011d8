"""The table that the report begins with: methods × domains, accuracy or mIoU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.data.corruptions import CATEGORIES
from onedomain.reporting.comparison import Column, Comparison, Domains
from onedomain.reporting.contenders import Contender
from onedomain.reporting.estimates import NORMAL, Estimate
from onedomain.reporting.page.headline import seeds_of
from onedomain.reporting.shown_metric import ACCURACY


@dataclass(frozen=True)
class AccuracyHead:
    name: str
    note: str
    average: bool = False
    home: bool = False


@dataclass(frozen=True)
class AccuracyCell:
    text: str
    value: float
    share: float  # of the bar behind it, %
    spread: str
    mark: str
    paper: str


@dataclass(frozen=True)
class AccuracyRow:
    title: str
    note: str
    reduced: bool
    cells: Sequence[AccuracyCell | None]


@dataclass(frozen=True)
class AccuracyTable:
    caption: str
    columns: Sequence[AccuracyHead]
    rows: Sequence[AccuracyRow]
    legend: str


def accuracy_table(comparison: Comparison) -> AccuracyTable:
    """Methods × domains: the average first, so that it is in sight on a phone, and the source last."""
    count = len(comparison.compared)
    left_out = len(comparison.unseen) - count
    over = f"of {count} unseen" if not left_out else f"of the {count} comparable"
    shown: list[tuple[AccuracyHead, Domains]] = [
        (AccuracyHead("average", over, average=True), tuple(comparison.compared))
    ]
    if comparison.corrupted:
        shown += _by_category(comparison)
    else:
        shown += [(AccuracyHead(each.name, _column_note(each)), each.name) for each in comparison.unseen]
    home = [*comparison.adapted_to, *comparison.sources]
    shown += [(AccuracyHead(each.name, _column_note(each), home=True), each.name) for each in home]
    rows = []
    for contender in comparison.contenders:
        cells = [_accuracy_cell(comparison, contender, domains) for _, domains in shown]
        rows.append(AccuracyRow(contender.title, _row_note(contender), bool(contender.reduced), cells))
    caption = f"{comparison.metric.heading} on unseen domains, %"
    return AccuracyTable(caption, [head for head, _ in shown], rows, _legend(comparison, rows))


def _by_category(comparison: Comparison) -> list[tuple[AccuracyHead, Domains]]:
    """Corruptions are many: their means by category, and over the categories. Each of them is in the heat maps."""
    found: dict[str, tuple[str, ...]] = {}
    for category, kinds in CATEGORIES.items():
        domains = tuple(name for name in comparison.compared if name.rpartition("-")[0] in kinds)
        if domains:
            found[category] = domains
    heads: list[tuple[AccuracyHead, Domains]] = [
        (AccuracyHead(f"{len(found)} categories", "their mean"), tuple(found.values()))
    ]
    return heads + [(AccuracyHead(name, f"of {len(domains)}"), domains) for name, domains in found.items()]


def _column_note(column: Column) -> str:
    parts = [] if column.unseen else ["adapted to" if column.adapted_to else "the source"]
    parts += [column.note] if column.note and column.unseen else []
    parts += [] if column.same_images else ["different images"]
    return " · ".join([*parts, f"{column.count:,}"])


def _row_note(contender: Contender) -> str:
    seeds, unit = contender.seeds, contender.repeated
    which = f"{unit}\u00a0{seeds[0]}" if len(seeds) == 1 else f"{len(seeds)}\u00a0{unit}s"
    trained, usual = contender.reduced.get("steps", (contender.steps, 0))
    if trained != contender.steps:  # of an adapted run: what its parent fell short of
        return f"{contender.steps:,} steps after {trained:,} of {usual:,} · {which}"
    return f"{contender.steps:,} {f'of {usual:,} ' if usual else ''}steps · {which}"


def _accuracy_cell(comparison: Comparison, contender: Contender, domains: Domains) -> AccuracyCell | None:
    estimate = comparison.estimate(contender, domains)
    if estimate is None:
        return None
    if isinstance(domains, str):
        return _cell(comparison, contender, domains, estimate, comparison.interval(contender, domains))
    half = NORMAL * math.sqrt(estimate.of_images)
    return _cell(comparison, contender, domains, estimate, (estimate.mean - half, estimate.mean + half))


def _cell(
    comparison: Comparison,
    contender: Contender,
    domains: Domains,
    estimate: Estimate,
    interval: tuple[float, float] | None,
) -> AccuracyCell:
    if estimate.deviation is not None:
        spread = f"± {100 * estimate.deviation:.1f}"
    else:
        spread = "–".join(f"{100 * bound:.1f}" for bound in interval or ())
    paper = comparison.paper(contender, domains)
    return AccuracyCell(
        text=f"{100 * estimate.mean:.1f}",
        value=estimate.mean,
        share=round(100 * estimate.mean, 1),
        spread=spread,
        mark=comparison.mark(contender, domains),
        paper="" if paper is None else f"{paper:.2f}",
    )


def _legend(comparison: Comparison, rows: Sequence[AccuracyRow]) -> str:
    cells = [cell for row in rows for cell in row.cells if cell is not None]
    parts = []
    if any(cell.mark == "best" for cell in cells):
        parts.append("★ best of its column")
    if any(cell.mark == "close" for cell in cells):
        parts.append("≈ chance may explain the distance to the best (95%)")
    counts = [len(each.runs) for each in comparison.contenders]
    by = "" if comparison.metric is ACCURACY else ", by a bootstrap: too narrow where they are frames of one video"
    parts += [f"small: 95% interval over images{by}"] if min(counts) == 1 else []
    units = sorted({f"{each.repeated}s" for each in comparison.contenders if len(each.runs) > 1}, reverse=True)
    parts += [f"± standard deviation over {' or '.join(units)}"] if units else []
    parts += ["paper: as published"] if any(cell.paper for cell in cells) else []
    return f"{'; '.join(parts)}. {seeds_of(comparison.contenders).capitalize()}."
