"""Accuracy or mIoU against the share of images flagged as out of domain: one panel per method."""

from __future__ import annotations

from typing import NamedTuple

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender, is_baseline
from onedomain.reporting.labels import Label, place_labels
from onedomain.reporting.shown_metric import ACCURACY
from onedomain.reporting.table import shortened

LEFT, RIGHT, TOP, BOTTOM = 36, 350, 7, 118  # of the square from 0 to 100%, in the panel's own units
LINE = 12.5  # height of a label
RADIUS = 4  # of a point
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
    "line": LINE,
}


class Point(NamedTuple):
    domain: str
    unseen: bool
    value: float
    flagged: float
    x: float
    y: float


class Panel(NamedTuple):
    """One method: its points and, unless they are too many, what they are called and where."""

    title: str
    points: list[Point]
    labels: list[Label]
    texts: list[str]
    word: str  # what a share of the shown metric is of

    @property
    def text(self) -> str:
        """The same in words, for those who cannot see it."""
        each = (f"{p.domain} {p.value:.0%} {self.word}, {p.flagged:.0%} flagged" for p in self.points)
        return f"{self.title}: {'; '.join(each)}."


def panels(comparison: Comparison) -> list[Panel]:
    """One per method, in their order of display; a method whose runs have no calibration has none."""
    found = []
    word = "right" if comparison.metric is ACCURACY else comparison.metric.title
    for contender in in_sight(comparison):
        points = _points(comparison, contender)
        labels, texts = [], []
        if len(points) <= MOST_LABELS:
            points = sorted(points, key=lambda point: point.y)
            texts = [shortened(point.domain, LONGEST_LABEL) for point in points]
            labels = place_labels([(point.x, point.y) for point in points], texts, (TOP, RIGHT + 4, BOTTOM), LINE)
        if points:
            found.append(Panel(contender.title, points, labels, texts, word))
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
