"""Accuracy against the share of images flagged as out of domain, a small panel a method: where things are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onedomain.report.comparison import Comparison
from onedomain.report.contenders import Contender

LEFT, RIGHT, TOP, BOTTOM = 36, 350, 7, 118  # of the square from 0 to 100%, in the panel's own units
FRAME = {
    "width": 356,
    "height": 148,
    "left": LEFT,
    "right": RIGHT,
    "top": TOP,
    "bottom": BOTTOM,
    "ticks": [
        {"text": "0", "x": LEFT, "y": BOTTOM, "anchor": "start"},
        {"text": "50", "x": (LEFT + RIGHT) / 2, "y": (TOP + BOTTOM) / 2, "anchor": "middle"},
        {"text": "100", "x": RIGHT, "y": TOP, "anchor": "end"},
    ],
}
LINE = 12.5  # height of a label
LETTER = 6.6  # width, rather too large, of a letter of a label
GAP = 7.0  # between a point and its label
LONGEST_LABEL = 24  # letters
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

    @property
    def label(self) -> str:
        return self.domain if len(self.domain) <= LONGEST_LABEL else f"{self.domain[: LONGEST_LABEL - 1]}…"

    @property
    def moved(self) -> bool:
        """Whether the label is too far away to be taken for the point's."""
        return abs(self.label_y - self.y) > LINE / 2


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
        width = LETTER * len(point.label)
        to_the_left = point.x + GAP + width > RIGHT + 4
        x = point.x - GAP if to_the_left else point.x + GAP
        y = point.y
        while any(_meet(x - width if to_the_left else x, y, width, other) for other in placed):
            y += 1.0
        placed.append(replace(point, label_x=x, label_y=y, anchor="end" if to_the_left else "start"))
    too_low = max(0.0, max(each.label_y for each in placed) - BOTTOM)
    return [replace(each, label_y=each.label_y - too_low) for each in placed]


def _meet(left: float, y: float, width: float, other: Point) -> bool:
    """Whether a label here would lie on another one or on another point."""
    other_width = LETTER * len(other.label)
    other_left = other.label_x - other_width if other.anchor == "end" else other.label_x
    on_label = abs(y - other.label_y) < LINE and left < other_left + other_width and other_left < left + width
    on_point = abs(y - other.y) < LINE / 2 + 3 and left < other.x + 5 and other.x - 5 < left + width
    return on_label or on_point
