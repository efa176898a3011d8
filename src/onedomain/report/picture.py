"""Accuracy against the share of images flagged as out of domain, a small panel a method: where things are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.report.comparison import Comparison, Contender

WIDTH, HEIGHT = 300, 196  # of a panel, in its own units
LEFT, RIGHT, TOP, BOTTOM = 34, 292, 8, 164  # of the square from 0 to 100%
LINE = 12.0  # height of a label
LETTER = 5.6  # mean width of a letter of a label
GAP = 7.0  # between a point and its label
MOST_LABELS = 8  # more domains than this are points that tell their names on hovering


@dataclass(frozen=True)
class Point:
    domain: str
    unseen: bool
    accuracy: float
    flagged: float
    x: float
    y: float
    label_x: float = 0.0
    label_y: float = 0.0
    anchor: str = "start"


@dataclass(frozen=True)
class Panel:
    title: str
    points: tuple[Point, ...]
    labelled: bool

    @property
    def text(self) -> str:
        """The same in words, for those who cannot see it."""
        each = (f"{p.domain} {100 * p.accuracy:.0f}% right, {100 * p.flagged:.0f}% flagged" for p in self.points)
        return f"{self.title}: {'; '.join(each)}."


def panels(comparison: Comparison) -> list[Panel]:
    """One a method, in the order of the table; a method whose runs have no calibration has none."""
    found = []
    for contender in comparison.contenders:
        points = _points(comparison, contender)
        if points:
            labelled = len(points) <= MOST_LABELS
            found.append(Panel(contender.title, tuple(place_labels(points) if labelled else points), labelled))
    return found


def _points(comparison: Comparison, contender: Contender) -> list[Point]:
    points = []
    for column in comparison.columns:
        accuracy, flagged = contender.accuracy(column.name), contender.mean(column.name, "flagged")
        if accuracy is not None and flagged is not None:
            x, y = LEFT + flagged * (RIGHT - LEFT), BOTTOM - accuracy.mean * (BOTTOM - TOP)
            points.append(Point(column.name, column.unseen, accuracy.mean, flagged, x, y))
    return points


def place_labels(points: Sequence[Point]) -> list[Point]:
    """Each label beside its point, on the side with room, moved up or down until none lies on another."""
    placed: list[Point] = []
    for point in sorted(points, key=lambda each: each.y):
        width = LETTER * len(point.domain)
        to_the_left = point.x + GAP + width > RIGHT + 4
        x = point.x - GAP if to_the_left else point.x + GAP
        y = point.y
        while any(_meet(point, x, y, width, to_the_left, other) for other in placed):
            y += 1.0
        anchor = "end" if to_the_left else "start"
        placed.append(
            Point(point.domain, point.unseen, point.accuracy, point.flagged, point.x, point.y, x, y, anchor)
        )
    lowest = max(each.label_y for each in placed) if placed else 0.0
    over = max(0.0, lowest - (BOTTOM - LINE / 2 + 4))
    return placed if over == 0 else [_raised(each, over) for each in placed]


def _meet(point: Point, x: float, y: float, width: float, to_the_left: bool, other: Point) -> bool:
    """Whether a label here would lie on another one or on another point."""
    left = x - width if to_the_left else x
    other_width = LETTER * len(other.domain)
    other_left = other.label_x - other_width if other.anchor == "end" else other.label_x
    labels = abs(y - other.label_y) < LINE and left < other_left + other_width and other_left < left + width
    dots = abs(y - other.y) < LINE / 2 + 3 and left < other.x + 5 and other.x - 5 < left + width
    return labels or dots


def _raised(point: Point, by: float) -> Point:
    return Point(
        point.domain,
        point.unseen,
        point.accuracy,
        point.flagged,
        point.x,
        point.y,
        point.label_x,
        point.label_y - by,
        point.anchor,
    )
