"""Two tables of the report: what was trained on what, and what the scores were measured on."""

from __future__ import annotations

from statistics import fmean

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.reporting.table import Cell, Row, Table, count, number, numbers, text, texts, words
from onedomain.runs.manifest import Environment


def training_table(comparison: Comparison, identity: str) -> Table:
    """What was trained on what: one row per method."""
    rows = []
    for contender in comparison.contenders:
        first = contender.runs[0].manifest
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
            Cell(_repeats(contender), len(contender.seeds)),
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


def _repeats(contender: Contender) -> str:
    return f"{'draws ' if contender.adapted_to else ''}{', '.join(contender.seeds)}"


def device(environment: Environment) -> str:
    threads = environment.threads
    return f"{environment.device}, {threads} {'thread' if threads == 1 else 'threads'}"


def domain_table(comparison: Comparison, identity: str) -> Table:
    rows = []
    for column in [*comparison.sources, *comparison.adapted_to, *comparison.unseen]:
        fingerprint = column.fingerprint if column.same_images else "differs between runs"
        what = texts(column.note or "as published", fingerprint)
        rows.append(Row(column.name, [*texts(column.role, column.split), count(column.count), *what]))
    columns = [*words("role", "split"), *numbers("images"), *words("what it is", "fingerprint")]
    return Table("What the scores were measured on", "domain", columns, rows, id=f"{identity}-domains")
