"""Where the names of points go in a picture, so that none lies on another or on a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# In heights of a line:
LETTER, RADIUS = 0.528, 0.32  # width of a letter, size of a point
GAP = 0.56  # between a point and its label


class Label(NamedTuple):
    """`x` is its edge that is near the point, and `y` half its height; it reaches from `left` to `right`."""

    x: float
    y: float
    left: float
    right: float

    @property
    def to_the_left(self) -> bool:
        return self.x == self.right


def place_labels(
    points: Sequence[tuple[float, float]], texts: Sequence[str], frame: tuple[float, float, float], line: float
) -> list[Label]:
    """Each label beside its point, on the side with room, at the nearest height where nothing is.

    `line` is the height of a label; the frame is top, right and bottom, and y counts downwards.
    """
    top, end, bottom = frame
    placed: dict[int, Label] = {}
    moves = sorted(range(-int(bottom - top), int(bottom - top)), key=abs)
    # From the bottom up, so that a crowd above the axis keeps the order of its points.
    for place in sorted(range(len(points)), key=lambda place: (points[place][1], place), reverse=True):
        (x, y), width, gap = points[place], LETTER * line * len(texts[place]), GAP * line
        label = Label(x + gap, y, x + gap, x + gap + width)
        if label.right > end:
            label = Label(x - gap, y, x - gap - width, x - gap)
        heights = [y + move for move in moves if top <= y + move <= bottom - RADIUS * line]
        candidates = (label._replace(y=height) for height in heights)
        taken = [(each.left, each.right, each.y, line) for each in placed.values()]
        reach = RADIUS * line
        taken += [(x - reach, x + reach, y, line / 2 + reach) for x, y in points]
        placed[place] = next((each for each in candidates if not any(_on(each, *box) for box in taken)), label)
    return [placed[place] for place in range(len(points))]


def _on(label: Label, left: float, right: float, y: float, apart: float) -> bool:
    return abs(label.y - y) < apart and label.left < right and left < label.right
