"""What a figure is, and how its function declares it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from onedomain.reporting.figures.style import styled
from onedomain.runs.records import RunRecords

Draw = Callable[[Sequence[RunRecords], str], Figure]


class Missing(Exception):
    """A figure cannot be drawn, for a reason that its text tells."""


@dataclass(frozen=True)
class Kind:
    """A figure that can be drawn: of all runs together, or one `for_each` group of them."""

    name: str
    title: str
    explanation: str  # one line for a person who does not know the paper
    draw: Draw
    place: int = 0  # among the others
    for_each: bool = False
    of_targets: bool = True  # whether it shows domains that the runs were scored on, not the training alone
    with_miou: str = ""  # the explanation where mIoU is shown, if it is another


DECLARED: dict[str, Kind] = {}


def figure(name: str, title: str, explanation: str, **about: Any) -> Callable[[Draw], Draw]:
    """Declare that the function below draws a figure: what `Kind` says of it, and the library's style."""

    def declare(draw: Draw) -> Draw:
        drawn = styled(draw)
        DECLARED[name] = Kind(name, title, explanation, drawn, **about)
        return drawn

    return declare
