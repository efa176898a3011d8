"""Plain tables of the report: what was trained on what, and what the scores were measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.runs.manifest import Environment


@dataclass(frozen=True)
class Head:
    name: str
    number: bool = True


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | str = ""  # what the column is sorted by
    best: bool = False


@dataclass(frozen=True)
class Table:
    id: str
    caption: str
    columns: Sequence[Head]
    rows: Sequence[Sequence[Cell]]  # the first cell names the row
    sortable: bool = True


def training_table(comparison: Comparison, identity: str) -> Table:
    """What was trained on what: a row a method."""
    heads = [Head("method", False), Head("trained on", False), Head("images"), Head("classes"), Head("network", False)]
    heads += [Head("parameters"), Head("steps"), Head("seeds", False), Head("minutes a run"), Head("on", False)]
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
        rows.append(
            [
                Cell(contender.title, contender.title),
                Cell(f"{source.name}{benchmark}, {shape}", source.name),
                Cell(f"{source.count:,}", source.count),
                Cell(str(len(source.classes)), len(source.classes)),
                Cell(first.network.name or first.network.own or "", first.network.name or first.network.own or ""),
                Cell(f"{parameters / 1e6:.2f} M", parameters),
                Cell(f"{contender.steps:,}", contender.steps),
                Cell(_repeats(contender), len(contender.seeds)),
                Cell(f"{minutes:.1f}", minutes),
                Cell(", ".join(devices), devices[0]),
            ]
        )
    adapted = any(contender.adapted_to for contender in comparison.contenders)
    caption = "Training never saw the unseen domains"
    caption += "; steps and minutes of adapted runs are those of adapting" if adapted else ""
    return Table(f"{identity}-trained", caption, heads, rows)


def _repeats(contender: Contender) -> str:
    return f"{'draws ' if contender.adapted_to else ''}{', '.join(contender.seeds)}"


def device(environment: Environment) -> str:
    threads = environment.threads
    return f"{environment.device}, {threads} {'thread' if threads == 1 else 'threads'}"


def domain_table(comparison: Comparison, identity: str) -> Table:
    heads = [Head("domain", False), Head("role", False), Head("split", False), Head("images")]
    heads += [Head("what it is", False), Head("fingerprint", False)]
    rows = []
    for column in [*comparison.sources, *comparison.adapted_to, *comparison.unseen]:
        print_of = column.fingerprint if column.same_images else "differs between runs"
        texts = [column.name, column.role, column.split]
        texts_after = [column.note or "as published", print_of]
        cells = [*(Cell(text, text) for text in texts), Cell(f"{column.count:,}", column.count)]
        rows.append([*cells, *(Cell(text, text) for text in texts_after)])
    return Table(f"{identity}-domains", "What the scores were measured on", heads, rows)
