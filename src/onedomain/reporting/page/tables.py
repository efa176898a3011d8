"""The tables of the report: scores, uncertainty, what was trained on what, and what the scores were measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from onedomain.reporting.average import mean
from onedomain.reporting.comparison import Column as Domain
from onedomain.reporting.comparison import Comparison, Domains
from onedomain.reporting.contenders import Contender
from onedomain.reporting.page.answers import Warnings, warnings
from onedomain.reporting.page.headline import seeds_of
from onedomain.reporting.shown_metric import ACCURACY
from onedomain.reporting.table import (
    BEST,
    CLOSE,
    GAP,
    Cell,
    Column,
    Row,
    Table,
    count,
    deviation,
    interval,
    number,
    numbers,
    percent,
    text,
    texts,
    words,
)
from onedomain.runs.manifest import Environment


def accuracy_table(comparison: Comparison, identity: str = "") -> Table:
    """Methods × domains: the average first, so that it is in sight on a phone, and the source last."""
    compared = len(comparison.compared)
    left_out = len(comparison.unseen) - compared
    over = f"of {compared} unseen" if not left_out else f"of the {compared} comparable"
    average = Column("average", note=over, order="descending", role="average")
    shown: list[tuple[Column, Domains]] = [(average, tuple(comparison.compared))]
    if comparison.corrupted:
        found = comparison.categories  # each corruption is in the heat maps
        shown.append((Column(f"{len(found)} categories", note="their mean"), tuple(found.values())))
        shown += [(Column(name, note=f"of {len(domains)}"), domains) for name, domains in found.items()]
    else:
        shown += [(Column(each.name, note=_column_note(each)), each.name) for each in comparison.unseen]
    home = [*comparison.adapted_to, *comparison.sources]
    shown += [(Column(each.name, note=_column_note(each), role="home"), each.name) for each in home]
    rows = []
    for contender in comparison.contenders:
        cells = [_cell(comparison, contender, domains) for _, domains in shown]
        badge = "reduced" if contender.reduced else ""
        rows.append(Row(contender.title, cells, note=_row_note(contender), badge=badge))
    return Table(
        f"{comparison.metric.heading} on unseen domains, %",
        "method",
        [column for column, _ in shown],
        rows,
        [_legend(comparison, rows)],
        id=f"{identity}-accuracy",
        look="accuracy",
    )


def _column_note(column: Domain) -> str:
    parts = [] if column.unseen else ["adapted to" if column.adapted_to else "the source"]
    parts += [column.note] if column.note and column.unseen else []
    parts += [] if column.same_images else ["different images"]
    return " · ".join([*parts, f"{column.count:,}"])


def _row_note(contender: Contender) -> str:
    seeds, unit = contender.seeds, contender.repeated
    which = f"{unit}\u00a0{seeds[0]}" if len(seeds) == 1 else f"{len(seeds)}\u00a0{unit}s"
    trained, usual = contender.reduced.get("steps", (contender.steps, 0))
    if trained != contender.steps:  # of an adapted run: what its parent fell short of
        return f"{contender.steps:,} steps after {trained:,} of {usual:,} · {which}"
    return f"{contender.steps:,} {f'of {usual:,} ' if usual else ''}steps · {which}"


def _cell(comparison: Comparison, contender: Contender, domains: Domains) -> Cell:
    estimate = comparison.estimate(contender, domains)
    if estimate is None:
        return Cell(GAP)
    spread = interval(*estimate.interval) if estimate.deviation is None else deviation(100 * estimate.deviation, 1)
    paper = comparison.paper(contender, domains)
    return replace(
        percent(estimate.mean, 1, spread),
        mark=comparison.mark(contender, domains),
        paper="" if paper is None else number(paper, 2).text,
    )


def _legend(comparison: Comparison, rows: Sequence[Row]) -> str:
    cells = [cell for row in rows for cell in row.cells]
    parts = []
    if any(cell.mark == BEST for cell in cells):
        parts.append("★ best of its column")
    if any(cell.mark == CLOSE for cell in cells):
        parts.append("≈ chance may explain the distance to the best (95%)")
    counts = [len(each.runs) for each in comparison.contenders]
    by = "" if comparison.metric is ACCURACY else ", by a bootstrap: too narrow where they are frames of one video"
    parts += [f"small: 95% interval over images{by}"] if min(counts) == 1 else []
    units = sorted({f"{each.repeated}s" for each in comparison.contenders if len(each.runs) > 1}, reverse=True)
    parts += [f"± standard deviation over {' or '.join(units)}"] if units else []
    parts += ["paper: as published"] if any(cell.paper for cell in cells) else []
    return f"{'; '.join(parts)}. {seeds_of(comparison.contenders).capitalize()}."


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
        "error AUROC", "chance that a wrong answer is more uncertain than a right one; 0.5 is blind", "error_auroc", max
    ),
    Doubt("entropy", "mean of the predictions' entropy, nats: how uncertain the model is", "entropy", None),
    Doubt("AURC", "mean error when the most uncertain answers are dropped first", "aurc", min),
    Doubt("ECE", "expected calibration error: how far confidence is from accuracy, %", "ece", min, percent=True),
    Doubt("NLL", "negative log-likelihood of the truth, nats", "nll", min),
    Doubt("Brier", "squared distance of the probabilities from the truth", "brier", min),
)


def uncertainty_table(comparison: Comparison, identity: str) -> Table:
    """One row per method; each value is the mean over the unseen domains that all have."""
    values = {each.title: _values(each, comparison.benchmark, comparison.compared) for each in comparison.contenders}
    alike = [values[each.title] for each in comparison.rivals]

    def best(place: int, doubt: Doubt) -> float | None:
        known = [value for row in alike if (value := row[place]) is not None]
        return doubt.better(known) if doubt.better and known and len(alike) > 1 else None

    bests = [best(place, doubt) for place, doubt in enumerate(DOUBTS)]
    rows = [Row(title, list(map(_doubt, DOUBTS, each, bests))) for title, each in values.items()]
    count = len(comparison.compared)
    caption = f"Mean over {'the unseen domain' if count == 1 else f'{count} unseen domains'}"
    columns = numbers(*(doubt.name for doubt in DOUBTS))
    terms = [f"{doubt.name}: {doubt.what}" for doubt in DOUBTS]
    return Table(caption, "method", columns, rows, terms, id=f"{identity}-doubts")


def uncertainty_by_domain(comparison: Comparison, identity: str) -> Table:
    rows = []
    for contender in comparison.contenders:
        for column in [*comparison.unseen, *comparison.adapted_to, *comparison.sources]:
            estimate = comparison.estimate(contender, column.name)
            if estimate is not None:
                values = _values(contender, comparison.benchmark, [column.name])
                name = f"{column.name} (source)" if column in comparison.sources else column.name
                rows.append(Row(contender.title, [text(name), percent(estimate.mean, 1), *map(_doubt, DOUBTS, values)]))
    columns = [*words("domain"), *numbers(comparison.metric.title, *(doubt.name for doubt in DOUBTS))]
    return Table("Every method on every domain", "method", columns, rows, id=f"{identity}-doubts-by-domain")


def _values(contender: Contender, benchmark: str, domains: Sequence[str]) -> list[float | None]:
    """Of each column: the plain mean over domains; None if one of them lacks it."""
    warned = warnings(contender, benchmark, domains)
    return [
        getattr(warned, doubt.metric, None)
        if doubt.metric in Warnings._fields
        else mean(contender.mean(domain, doubt.metric) for domain in domains)
        for doubt in DOUBTS
    ]


def _doubt(doubt: Doubt, value: float | None, best: float | None = None) -> Cell:
    shown = percent(value, 1) if doubt.percent else number(value)
    return replace(shown, mark=BEST) if best is not None and value == best else shown


def training_table(comparison: Comparison, identity: str) -> Table:
    """What was trained on what: one row per method."""
    rows = []
    for contender in comparison.contenders:
        first = contender.manifest
        recorded = [next(iter(rows.values()))["accuracy"] for rows in contender.rows]
        minutes = fmean(row["train_seconds"] for row in recorded) / 60
        parameters = recorded[0]["training_parameters"]
        source = first.source
        shape = "×".join(map(str, source.image_shape))
        benchmark = f" of {first.benchmark}" if first.benchmark else ""
        devices = sorted({device(run.manifest.environment) for run in contender.runs})
        cells = [
            Cell(f"{source.name}{benchmark}, {shape}", source.name),
            count(source.count),
            count(len(source.classes)),
            text(first.network.name or first.network.own or ""),
            Cell(f"{parameters / 1e6:.2f} M", parameters),
            count(contender.steps),
            Cell(f"{'draws ' if contender.adapted_to else ''}{', '.join(contender.seeds)}", len(contender.seeds)),
            number(minutes, 1),
            Cell(", ".join(devices), devices[0]),
        ]
        rows.append(Row(contender.title, cells))
    adapted = any(contender.adapted_to for contender in comparison.contenders)
    caption = "Training never saw the unseen domains"
    caption += "; steps and minutes of adapted runs are those of adapting" if adapted else ""
    columns = [*words("trained on"), *numbers("images", "classes"), *words("network"), *numbers("parameters", "steps")]
    columns += [*words("seeds"), *numbers("minutes per run"), *words("on")]
    return Table(caption, "method", columns, rows, id=f"{identity}-trained")


def device(environment: Environment) -> str:
    threads = environment.threads
    on = f"{environment.device}, {threads} {'thread' if threads == 1 else 'threads'}"
    return on if environment.processes == 1 else f"{on} in each of {environment.processes} processes"


def domain_table(comparison: Comparison, identity: str) -> Table:
    rows = []
    for column in [*comparison.sources, *comparison.adapted_to, *comparison.unseen]:
        fingerprint = column.fingerprint if column.same_images else "differs between runs"
        what = texts(column.note or "as published", fingerprint)
        rows.append(Row(column.name, [*texts(column.role, column.split), count(column.count), *what]))
    columns = [*words("role", "split"), *numbers("images"), *words("what it is", "fingerprint")]
    return Table("What the scores were measured on", "domain", columns, rows, id=f"{identity}-domains")
