"""Figures from run folders alone: no data, no model. `figures_for` draws all that the given runs have records for."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from onedomain.data.datasets.cifar_c import REGENERATED_NOTE
from onedomain.reporting.contenders import contenders_of
from onedomain.reporting.figures.declare import DECLARED, Kind, Missing
from onedomain.reporting.figures.style import png, remark_below, save, svg
from onedomain.reporting.shown_metric import ACCURACY, MIOU, shown_metric
from onedomain.runs.records import RunRecords

MOST_OF_A_KIND = 4  # figures of single runs: a page with more of them is not looked at

__all__ = ["Drawn", "Figures", "Kind", "figures_for", "kinds", "png", "save", "svg"]


def kinds() -> list[Kind]:
    """All that are declared in this room's files, in order."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return sorted(DECLARED.values(), key=lambda kind: kind.place)


@dataclass(frozen=True)
class Drawn:
    name: str
    title: str
    explanation: str
    figure: Figure


class Figures(list[Drawn]):
    """The figures that could be drawn, and for each of the others its name and the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped: list[tuple[str, str]] = []


def figures_for(
    runs: Sequence[RunRecords], benchmark: str, tell: Callable[[str, float], None] = lambda name, done: None
) -> Figures:
    """All figures that these runs have records for, on the domains of one benchmark (`own` for one's own images).

    `tell` is told the name of each figure before it is drawn, and how much is done, from 0 to 1.
    """
    figures = Figures()
    groups = contenders_of(runs, benchmark)
    every = kinds()
    for place, kind in enumerate(every):
        tell(kind.name, place / len(every))
        if not kind.for_each:
            _draw(kind, runs, benchmark, figures)
            continue
        makers = [group for group in groups if group.runs[0].augmented()]
        for group in makers[:MOST_OF_A_KIND] or groups[:1]:
            _draw(kind, group.runs, benchmark, figures, group.title if len(makers) > 1 else "")
        for group in makers[MOST_OF_A_KIND:]:
            reason = f"there are {MOST_OF_A_KIND} of its kind already; give {group.runs[0].folder} with fewer others"
            figures.skipped.append((f"{kind.name} of {group.title}", reason))
    return figures


def _regenerated(runs: Sequence[RunRecords], benchmark: str) -> str:
    """What to say where targets are not the official files but were made anew; empty where none was."""
    notes: dict[str, str] = {}
    for run in runs:
        for domain, metrics in run.scores(benchmark).items():
            row = next(iter(metrics.values()))
            if row["unseen"]:
                notes[domain] = notes.get(domain) or row.get("note", "")
    made = [note for note in notes.values() if REGENERATED_NOTE in note]
    if not made:
        return ""
    which = "targets" if len(made) == len(notes) else f"{len(made)} of {len(notes)} targets"
    return f"{which}: {'; '.join(dict.fromkeys(made))}"


def _draw(kind: Kind, runs: Sequence[RunRecords], benchmark: str, figures: Figures, of: str = "") -> None:
    name, title, explanation = kind.name, kind.title, kind.explanation
    if shown_metric(runs, benchmark) is MIOU:
        name, title = name.replace(ACCURACY.name, MIOU.name), title.replace(ACCURACY.heading, MIOU.heading)
        explanation = kind.with_miou or explanation
    name += f"-{re.sub(r'[^a-z0-9]+', '-', of.lower()).strip('-')}" if of else ""
    try:
        figure = kind.draw(runs, benchmark)
    except Missing as reason:
        figures.skipped.append((name, str(reason)))
        return
    if kind.of_targets and (remark := _regenerated(runs, benchmark)):
        remark_below(figure, remark)
    figure.set_label(name)  # figures of one page share no ids
    figures.append(Drawn(name, f"{title}: {of}" if of else title, explanation, figure))
