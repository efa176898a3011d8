"""The table that the report begins with: methods × domains, accuracy or mIoU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.report.comparison import Column, Comparison
from onedomain.report.contenders import Contender
from onedomain.report.estimates import NORMAL, Estimate
from onedomain.report.headline import seeds_of
from onedomain.shown_metric import ACCURACY


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
    shown = [*comparison.unseen, *comparison.adapted_to, *comparison.sources]
    columns = [AccuracyHead("average", over, average=True)]
    columns += [AccuracyHead(each.name, _column_note(each), home=not each.unseen) for each in shown]
    rows = []
    for contender in comparison.contenders:
        cells = [_average_cell(comparison, contender)]
        cells += [_accuracy_cell(comparison, contender, each.name) for each in shown]
        rows.append(AccuracyRow(contender.title, _row_note(contender), bool(contender.reduced), cells))
    caption = f"{comparison.metric.heading} on unseen domains, %"
    return AccuracyTable(caption, columns, rows, _legend(comparison, rows))


def _column_note(column: Column) -> str:
    parts = [] if column.unseen else ["adapted to" if column.adapted_to else "the source"]
    parts += [column.note] if column.note and column.unseen else []
    parts += [] if column.same_images else ["different images"]
    return " · ".join([*parts, f"{column.count:,}"])


def _row_note(contender: Contender) -> str:
    seeds, unit = contender.seeds, contender.repeated
    which = f"{unit}\u00a0{seeds[0]}" if len(seeds) == 1 else f"{len(seeds)}\u00a0{unit}s"
    of = f"of {contender.reduced['steps'][1]:,} " if "steps" in contender.reduced else ""
    return f"{contender.steps:,} {of}steps · {which}"


def _average_cell(comparison: Comparison, contender: Contender) -> AccuracyCell | None:
    estimate = comparison.average(contender)
    if estimate is None:
        return None
    half = NORMAL * math.sqrt(estimate.of_images)
    return _cell(comparison, contender, None, estimate, (estimate.mean - half, estimate.mean + half))


def _accuracy_cell(comparison: Comparison, contender: Contender, domain: str) -> AccuracyCell | None:
    estimate = comparison.estimate(contender, domain)
    if estimate is None:
        return None
    return _cell(comparison, contender, domain, estimate, comparison.interval(contender, domain))


def _cell(
    comparison: Comparison,
    contender: Contender,
    domain: str | None,
    estimate: Estimate,
    interval: tuple[float, float] | None,
) -> AccuracyCell:
    if estimate.deviation is not None:
        spread = f"± {100 * estimate.deviation:.1f}"
    else:
        spread = "–".join(f"{100 * bound:.1f}" for bound in interval or ())
    paper = comparison.paper(contender, domain)
    return AccuracyCell(
        text=f"{100 * estimate.mean:.1f}",
        value=estimate.mean,
        share=round(100 * estimate.mean, 1),
        spread=spread,
        mark=comparison.mark(contender, domain),
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
