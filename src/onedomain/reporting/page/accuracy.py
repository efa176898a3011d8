"""The table that the report begins with: methods × domains, accuracy or mIoU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from onedomain.data.corruptions import CATEGORIES
from onedomain.reporting.comparison import Column as Domain
from onedomain.reporting.comparison import Comparison, Domains
from onedomain.reporting.contenders import Contender
from onedomain.reporting.estimates import NORMAL
from onedomain.reporting.page.headline import seeds_of
from onedomain.reporting.shown_metric import ACCURACY
from onedomain.reporting.table import (
    BEST,
    CLOSE,
    GAP,
    Cell,
    Column,
    Row,
    Table,
    deviation,
    interval,
    number,
    percent,
)


def accuracy_table(comparison: Comparison, identity: str = "") -> Table:
    """Methods × domains: the average first, so that it is in sight on a phone, and the source last."""
    compared = len(comparison.compared)
    left_out = len(comparison.unseen) - compared
    over = f"of {compared} unseen" if not left_out else f"of the {compared} comparable"
    average = Column("average", note=over, order="descending", role="average")
    shown: list[tuple[Column, Domains]] = [(average, tuple(comparison.compared))]
    if comparison.corrupted:
        shown += _by_category(comparison)
    else:
        shown += [(Column(each.name, note=_column_note(each)), each.name) for each in comparison.unseen]
    home = [*comparison.adapted_to, *comparison.sources]
    shown += [(Column(each.name, note=_column_note(each), role="home"), each.name) for each in home]
    rows = []
    for contender in comparison.contenders:
        cells = [_cell(comparison, contender, domains) for _, domains in shown]
        badge = "reduced" if contender.reduced else ""
        rows.append(Row(contender.title, cells, note=_row_note(contender), badge=badge))
    return Table(
        f"{comparison.metric.heading} on unseen domains, %",
        "method",
        [column for column, _ in shown],
        rows,
        [_legend(comparison, rows)],
        id=f"{identity}-accuracy",
        look="accuracy",
    )


def _by_category(comparison: Comparison) -> list[tuple[Column, Domains]]:
    """Corruptions are many: their means by category, and over the categories. Each of them is in the heat maps."""
    found: dict[str, tuple[str, ...]] = {}
    for category, kinds in CATEGORIES.items():
        domains = tuple(name for name in comparison.compared if name.rpartition("-")[0] in kinds)
        if domains:
            found[category] = domains
    columns: list[tuple[Column, Domains]] = [
        (Column(f"{len(found)} categories", note="their mean"), tuple(found.values()))
    ]
    return columns + [(Column(name, note=f"of {len(domains)}"), domains) for name, domains in found.items()]


def _column_note(column: Domain) -> str:
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


def _cell(comparison: Comparison, contender: Contender, domains: Domains) -> Cell:
    estimate = comparison.estimate(contender, domains)
    if estimate is None:
        return Cell(GAP)
    if estimate.deviation is not None:
        spread = deviation(100 * estimate.deviation, 1)
    elif isinstance(domains, str):
        spread = interval(*(comparison.interval(contender, domains) or ()))
    else:
        half = NORMAL * math.sqrt(estimate.of_images)
        spread = interval(estimate.mean - half, estimate.mean + half)
    paper = comparison.paper(contender, domains)
    return replace(
        percent(estimate.mean, 1, spread),
        share=round(100 * estimate.mean, 1),
        mark=comparison.mark(contender, domains),
        paper="" if paper is None else number(paper, 2).text,
    )


def _legend(comparison: Comparison, rows: Sequence[Row]) -> str:
    cells = [cell for row in rows for cell in row.cells]
    parts = []
    if any(cell.mark == BEST for cell in cells):
        parts.append("★ best of its column")
    if any(cell.mark == CLOSE for cell in cells):
        parts.append("≈ chance may explain the distance to the best (95%)")
    counts = [len(each.runs) for each in comparison.contenders]
    by = "" if comparison.metric is ACCURACY else ", by a bootstrap: too narrow where they are frames of one video"
    parts += [f"small: 95% interval over images{by}"] if min(counts) == 1 else []
    units = sorted({f"{each.repeated}s" for each in comparison.contenders if len(each.runs) > 1}, reverse=True)
    parts += [f"± standard deviation over {' or '.join(units)}"] if units else []
    parts += ["paper: as published"] if any(cell.paper for cell in cells) else []
    return f"{'; '.join(parts)}. {seeds_of(comparison.contenders).capitalize()}."
