"""Where the names of points go in a picture, so that none lies on another or on a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# In heights of a line:
LETTER, RADIUS = 0.528, 0.32  # width of a letter, size of a point
GAP = 0.56  # between a point and its label


class Label(NamedTuple):
    """Its edge that is near the point, at half its height; it reaches from `left` to `right`."""

    x: float
    y: float
    to_the_left: bool
    left: float
    right: float

    def meets(self, other: Label) -> bool:
        """Whether they would lie on each other if they were at one height."""
        return self.left < other.right and other.left < self.right


def place_labels(
    points: Sequence[tuple[float, float]], texts: Sequence[str], right: float, bottom: float, line: float
) -> list[Label]:
    """Each label beside its point, on the side with room; labels keep the order of their points.

    `line` is the height of a label, `right` and `bottom` are where the picture ends; y counts downwards.
    """
    order = sorted(range(len(points)), key=lambda place: points[place][1])
    placed: dict[int, Label] = {}
    for place in order:
        (x, y), width = points[place], LETTER * line * len(texts[place])
        to_the_left = x + GAP * line + width > right
        edge = x - GAP * line if to_the_left else x + GAP * line
        left = edge - width if to_the_left else edge
        label = Label(edge, y, to_the_left, left, left + width)
        others = [point for other, point in enumerate(points) if other != place]
        while any(abs(label.y - each.y) < line and label.meets(each) for each in placed.values()) or any(
            _covers(label, point, line) for point in others
        ):
            label = label._replace(y=label.y + 1)
        placed[place] = label
    lowest: list[Label] = []  # what was pushed below the picture pushes those above it up again
    for place in reversed(order):
        label = placed[place]
        below = [each.y - line for each in lowest if each.meets(label)]
        placed[place] = label._replace(y=min([label.y, bottom - RADIUS * line, *below]))
        lowest.append(placed[place])
    return [placed[place] for place in range(len(points))]


def _covers(label: Label, point: tuple[float, float], line: float) -> bool:
    x, y = point
    near = abs(label.y - y) < (0.5 + RADIUS) * line
    return near and label.left < x + RADIUS * line and x - RADIUS * line < label.right
