"""Tables of how well the models know what they do not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.reporting.page.answers import Warnings, mean_warnings, warnings
from onedomain.reporting.table import BEST, Cell, Row, Table, number, numbers, percent, text, words


@dataclass(frozen=True)
class Doubt:
    """A column of the tables of uncertainty."""

    name: str
    what: str
    digits: int
    percent: bool
    better: Callable[[Sequence[float]], float] | None  # max, min, or None where neither is better
    metric: str | None = None  # of the records; else of the answers
    of_answers: Callable[[Warnings], float | None] | None = None


DOUBTS = (
    Doubt("flagged", "images called out of domain, %; 5 on new images of the source", 1, True, None, "flagged"),
    Doubt("wrong flagged", "of the wrong answers, %", 1, True, max, of_answers=lambda warned: warned.of_wrong),
    Doubt("right flagged", "of the right answers, %: needless alarms", 1, True, min, of_answers=lambda w: w.of_right),
    Doubt(
        "error AUROC",
        "chance that a wrong answer is more uncertain than a right one; 0.5 is blind",
        3,
        False,
        max,
        "error_auroc",
    ),
    Doubt("entropy", "mean of the predictions' entropy, nats: how uncertain the model is", 3, False, None, "entropy"),
    Doubt("AURC", "mean error when the most uncertain answers are dropped first", 3, False, min, "aurc"),
    Doubt("ECE", "expected calibration error: how far confidence is from accuracy, %", 1, True, min, "ece"),
    Doubt("NLL", "negative log-likelihood of the truth, nats", 3, False, min, "nll"),
    Doubt("Brier", "squared distance of the probabilities from the truth", 3, False, min, "brier"),
)


def uncertainty_table(comparison: Comparison, identity: str) -> Table:
    """One row per method; each value is the mean over the unseen domains that all have."""
    values = [[_over_domains(comparison, contender, doubt) for doubt in DOUBTS] for contender in comparison.contenders]
    alike = [row for each, row in zip(comparison.contenders, values, strict=True) if each in comparison.rivals]
    several = len(alike) > 1
    best = [_best(doubt, [row[place] for row in alike]) if several else None for place, doubt in enumerate(DOUBTS)]
    rows = [
        Row(contender.title, list(map(_cell, DOUBTS, row, best)))
        for contender, row in zip(comparison.contenders, values, strict=True)
    ]
    caption = f"Mean over {_domains(len(comparison.compared))}"
    return Table(caption, "method", numbers(*(doubt.name for doubt in DOUBTS)), rows, id=f"{identity}-doubts")


def uncertainty_by_domain(comparison: Comparison, identity: str) -> Table:
    rows = []
    for contender in comparison.contenders:
        for column in [*comparison.unseen, *comparison.adapted_to, *comparison.sources]:
            estimate = comparison.estimate(contender, column.name)
            if estimate is None:
                continue
            doubts = [_cell(doubt, _on_domain(comparison, contender, column.name, doubt)) for doubt in DOUBTS]
            name = f"{column.name} (source)" if column in comparison.sources else column.name
            rows.append(Row(contender.title, [text(name), percent(estimate.mean, 1), *doubts]))
    columns = [*words("domain"), *numbers(comparison.metric.title, *(doubt.name for doubt in DOUBTS))]
    return Table("Every method on every domain", "method", columns, rows, id=f"{identity}-doubts-by-domain")


def _domains(count: int) -> str:
    return "the unseen domain" if count == 1 else f"{count} unseen domains"


def _over_domains(comparison: Comparison, contender: Contender, doubt: Doubt) -> float | None:
    if doubt.metric is not None:
        return comparison.mean(contender, doubt.metric)
    return _of_answers(doubt, mean_warnings(contender, comparison.benchmark, comparison.compared))


def _on_domain(comparison: Comparison, contender: Contender, domain: str, doubt: Doubt) -> float | None:
    if doubt.metric is not None:
        return contender.mean(domain, doubt.metric)
    return _of_answers(doubt, warnings(contender, comparison.benchmark, domain))


def _of_answers(doubt: Doubt, warned: Warnings | None) -> float | None:
    return None if warned is None or doubt.of_answers is None else doubt.of_answers(warned)


def _best(doubt: Doubt, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return doubt.better(known) if doubt.better is not None and known else None


def _cell(doubt: Doubt, value: float | None, best: float | None = None) -> Cell:
    shown = percent(value, doubt.digits) if doubt.percent else number(value, doubt.digits)
    return replace(shown, mark=BEST) if best is not None and value == best else shown
