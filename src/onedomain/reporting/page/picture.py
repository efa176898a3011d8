"""Accuracy or mIoU against the share of images flagged as out of domain: one panel per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender, is_baseline
from onedomain.reporting.shown_metric import ACCURACY

LEFT, RIGHT, TOP, BOTTOM = 36, 350, 7, 118  # of the square from 0 to 100%, in the panel's own units
LINE = 12.5  # height of a label
LETTER = 6.6  # width, rather too large, of a letter of a label
RADIUS = 4  # of a point
GAP = 7.0  # between a point and its label
LONGEST_LABEL = 24  # letters
SHOWN = 3  # panels in sight; the others are folded away
MOST_LABELS = 8  # more domains than this are points that tell their names on hovering

FRAME = {
    "width": 356,
    "height": 148,
    "left": LEFT,
    "right": RIGHT,
    "top": TOP,
    "bottom": BOTTOM,
    "radius": RADIUS,
    "ticks": [
        {"text": "0", "x": LEFT, "y": BOTTOM, "anchor": "start"},
        {"text": "50", "x": (LEFT + RIGHT) / 2, "y": (TOP + BOTTOM) / 2, "anchor": "middle"},
        {"text": "100", "x": RIGHT, "y": TOP, "anchor": "end"},
    ],
}


@dataclass(frozen=True)
class Point:
    domain: str
    unseen: bool
    value: float
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
    word: str  # what a share of the shown metric is of

    @property
    def text(self) -> str:
        """The same in words, for those who cannot see it."""
        each = (f"{p.domain} {100 * p.value:.0f}% {self.word}, {100 * p.flagged:.0f}% flagged" for p in self.points)
        return f"{self.title}: {'; '.join(each)}."


def panels(comparison: Comparison) -> list[Panel]:
    """One per method, in their order of display; a method whose runs have no calibration has none."""
    found = []
    word = "right" if comparison.metric is ACCURACY else comparison.metric.title
    for contender in in_sight(comparison):
        points = _points(comparison, contender)
        if points:
            labelled = len(points) <= MOST_LABELS
            placed = tuple(place_labels(points) if labelled else points)
            found.append(Panel(contender.title, placed, labelled, word))
    return found


def in_sight(comparison: Comparison) -> list[Contender]:
    """In the order of the table, but plain training is among the first, which are not folded away: the others are to be
    compared with it.
    """
    ordered = list(comparison.contenders)
    for place, contender in enumerate(ordered):
        if is_baseline(contender) and place >= SHOWN:
            ordered.insert(SHOWN - 1, ordered.pop(place))
            break
    return ordered


def _points(comparison: Comparison, contender: Contender) -> list[Point]:
    points = []
    for column in comparison.columns:
        estimate, flagged = comparison.estimate(contender, column.name), contender.mean(column.name, "flagged")
        if estimate is not None and flagged is not None:
            x, y = LEFT + flagged * (RIGHT - LEFT), BOTTOM - estimate.mean * (BOTTOM - TOP)
            points.append(Point(column.name, column.unseen, estimate.mean, flagged, x, y))
    return points


def place_labels(points: Sequence[Point]) -> list[Point]:
    """Each label beside its point, on the side with room; labels keep the order of their points, none on another."""
    placed: list[Point] = []
    for point in sorted(points, key=lambda each: each.y):
        width = LETTER * len(point.label)
        to_the_left = point.x + GAP + width > RIGHT + 4
        x = point.x - GAP if to_the_left else point.x + GAP
        label = replace(point, label_x=x, label_y=point.y, anchor="end" if to_the_left else "start")
        others = [other for other in points if other is not point]
        while any(_on_label(label, each) for each in placed) or any(_on_point(label, each) for each in others):
            label = replace(label, label_y=label.label_y + 1)
        placed.append(label)
    for place in reversed(range(len(placed))):  # what was pushed below the axis pushes those above it up again
        below = [each.label_y - LINE for each in placed[place + 1 :] if _beside(placed[place], each)]
        lowest = min([BOTTOM - RADIUS, *below])
        placed[place] = replace(placed[place], label_y=min(placed[place].label_y, lowest))
    return placed


def _span(label: Point) -> tuple[float, float]:
    width = LETTER * len(label.label)
    left = label.label_x - width if label.anchor == "end" else label.label_x
    return left, left + width


def _beside(one: Point, other: Point) -> bool:
    """Whether their labels would meet if they were at one height."""
    (left, right), (other_left, other_right) = _span(one), _span(other)
    return left < other_right and other_left < right


def _on_label(one: Point, other: Point) -> bool:
    return abs(one.label_y - other.label_y) < LINE and _beside(one, other)


def _on_point(label: Point, point: Point) -> bool:
    left, right = _span(label)
    near = abs(label.label_y - point.y) < LINE / 2 + RADIUS
    return near and left < point.x + RADIUS and point.x - RADIUS < right
