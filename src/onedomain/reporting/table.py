"""What a table is, whoever shows it: columns, rows, cells and notes. `render` has a module for each format.

Numbers become text here alone, so that a share, a deviation or a gap looks the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.errors import one_line as one_line

GAP = "–"
NOT_RUN = "not run"
LONGEST_NAME = 23  # letters of a domain's name beside an axis

# What a row is. Renderers show each kind in their own way.
PLAIN, SECTION, PAPER, DIFFERENCE, MEAN, GROUP_MEAN = "plain", "section", "paper", "difference", "mean", "group-mean"
BEST, CLOSE = "best", "close"
MARKS = {BEST: "★", CLOSE: "≈"}


@dataclass(frozen=True)
class Column:
    name: str
    number: bool = True
    note: str = ""
    unit: str = ""
    order: str = "none"  # in which the rows are given: none, ascending or descending
    role: str = ""  # average or home, among columns of domains

    @property
    def heading(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | str | None = None  # as shown but unrounded, to sort by; None for a gap
    mark: str = ""  # best or close
    spread: str = ""
    paper: str = ""  # the paper's number

    @property
    def words(self) -> str:
        """All of it on one line."""
        parts = (self.text, MARKS.get(self.mark, ""), self.spread, f"paper {self.paper}" if self.paper else "")
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Row:
    """A title and a cell for each column; a section has a title alone."""

    title: str
    cells: Sequence[Cell] = ()
    kind: str = PLAIN
    note: str = ""
    badge: str = ""
    apart: bool = False  # from the row above

    @property
    def words(self) -> str:
        return " ".join(part for part in (self.title, self.badge, self.note) if part)


@dataclass(frozen=True)
class Table:
    """`corner` is the heading of the rows' titles. `id` and `look` are those of the table in a page."""

    title: str
    corner: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    id: str = ""
    look: str = ""
    sortable: bool = True

    @property
    def headings(self) -> list[str]:
        return [self.corner, *(column.heading for column in self.columns)]

    def texts(self, row: Row) -> list[str]:
        """As many as there are headings."""
        cells = row.cells or [Cell("")] * len(self.columns)
        return [row.words, *(cell.words for cell in cells)]


def words(*names: str) -> list[Column]:
    return [Column(name, number=False) for name in names]


def numbers(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def text(value: str) -> Cell:
    return Cell(value, value)


def texts(*values: str) -> list[Cell]:
    return [text(value) for value in values]


def percent(value: float | None, digits: int = 2, spread: str = "") -> Cell:
    """A share in percent.

    >>> percent(0.4806).text, percent(0.4806, 0).text, percent(None).text
    ('48.06', '48', '–')
    """
    return number(None if value is None else 100 * value, digits, spread=spread)


def number(value: float | None, digits: int = 3, *, gap: str = GAP, spread: str = "") -> Cell:
    if value is None or math.isnan(value):
        return Cell(gap)
    return Cell(f"{value:.{digits}f}", value, spread=spread)


def count(value: int | None) -> Cell:
    return Cell(GAP) if value is None else Cell(f"{value:,}", value)


def difference(value: float | None, digits: int = 2) -> Cell:
    """
    >>> difference(0.5).text, difference(-0.5).text, difference(None).text
    ('+0.50', '−0.50', '')
    """
    return Cell("") if value is None else Cell(f"{value:+.{digits}f}".replace("-", "−"), value)


def interval(low: float, high: float) -> str:
    """Of a share, in percent.

    >>> interval(0.407, 0.468)
    '40.7–46.8'
    """
    return f"{100 * low:.1f}–{100 * high:.1f}"


def deviation(value: float | None, digits: int = 2) -> str:
    """
    >>> deviation(4.2426), deviation(None)
    ('± 4.24', '')
    """
    return "" if value is None else f"± {value:.{digits}f}"


def shortened(text: str, most: int = LONGEST_NAME) -> str:
    """A name that leaves room for what it names.

    >>> shortened("a-rather-long-name-of-a-folder")
    'a-rather-long-name-of-…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
