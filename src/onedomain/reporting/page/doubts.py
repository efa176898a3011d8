"""Tables of how well the models know what they do not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from onedomain.reporting.average import mean
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.reporting.page.answers import Warnings, mean_warnings
from onedomain.reporting.table import BEST, Cell, Row, Table, number, numbers, percent, text, words


class Doubt(NamedTuple):
    """A column of the tables of uncertainty."""

    name: str
    what: str
    metric: str  # of the records, or of `Warnings`
    better: Callable[[Sequence[float]], float] | None  # max, min, or None where neither is better
    percent: bool = False


DOUBTS = (
    Doubt("flagged", "images called out of domain, %; 5 on new images of the source", "flagged", None, percent=True),
    Doubt("wrong flagged", "of the wrong answers, %", "of_wrong", max, percent=True),
    Doubt("right flagged", "of the right answers, %: needless alarms", "of_right", min, percent=True),
    Doubt(
        "error AUROC",
        "chance that a wrong answer is more uncertain than a right one; 0.5 is blind",
        "error_auroc",
        max,
    ),
    Doubt("entropy", "mean of the predictions' entropy, nats: how uncertain the model is", "entropy", None),
    Doubt("AURC", "mean error when the most uncertain answers are dropped first", "aurc", min),
    Doubt("ECE", "expected calibration error: how far confidence is from accuracy, %", "ece", min, percent=True),
    Doubt("NLL", "negative log-likelihood of the truth, nats", "nll", min),
    Doubt("Brier", "squared distance of the probabilities from the truth", "brier", min),
)


def uncertainty_table(comparison: Comparison, identity: str) -> Table:
    """One row per method; each value is the mean over the unseen domains that all have."""
    values = [
        [_value(each, comparison.benchmark, comparison.compared, doubt) for doubt in DOUBTS]
        for each in comparison.contenders
    ]
    alike = [row for each, row in zip(comparison.contenders, values, strict=True) if each in comparison.rivals]
    several = len(alike) > 1
    best = [_best(doubt, [row[place] for row in alike]) if several else None for place, doubt in enumerate(DOUBTS)]
    rows = [
        Row(contender.title, list(map(_cell, DOUBTS, row, best)))
        for contender, row in zip(comparison.contenders, values, strict=True)
    ]
    count = len(comparison.compared)
    caption = f"Mean over {'the unseen domain' if count == 1 else f'{count} unseen domains'}"
    return Table(caption, "method", numbers(*(doubt.name for doubt in DOUBTS)), rows, id=f"{identity}-doubts")


def uncertainty_by_domain(comparison: Comparison, identity: str) -> Table:
    rows = []
    for contender in comparison.contenders:
        for column in [*comparison.unseen, *comparison.adapted_to, *comparison.sources]:
            estimate = comparison.estimate(contender, column.name)
            if estimate is None:
                continue
            values = [_value(contender, comparison.benchmark, [column.name], doubt) for doubt in DOUBTS]
            name = f"{column.name} (source)" if column in comparison.sources else column.name
            rows.append(Row(contender.title, [text(name), percent(estimate.mean, 1), *map(_cell, DOUBTS, values)]))
    columns = [*words("domain"), *numbers(comparison.metric.title, *(doubt.name for doubt in DOUBTS))]
    return Table("Every method on every domain", "method", columns, rows, id=f"{identity}-doubts-by-domain")


def _value(contender: Contender, benchmark: str, domains: Sequence[str], doubt: Doubt) -> float | None:
    """The plain mean over domains; None if one of them lacks it."""
    if doubt.metric not in Warnings._fields:
        return mean(contender.mean(domain, doubt.metric) for domain in domains)
    warned = mean_warnings(contender, benchmark, domains)
    return None if warned is None else getattr(warned, doubt.metric)


def _best(doubt: Doubt, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return doubt.better(known) if doubt.better is not None and known else None


def _cell(doubt: Doubt, value: float | None, best: float | None = None) -> Cell:
    shown = percent(value, 1) if doubt.percent else number(value)
    return replace(shown, mark=BEST) if best is not None and value == best else shown
