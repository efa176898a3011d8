"""A result as tables that every renderer shows, and the files that `reproduce` keeps of it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onedomain.data.files import write_atomically
from onedomain.reporting import table as model
from onedomain.reporting.render.latex import as_latex
from onedomain.reporting.render.markdown import as_markdown
from onedomain.reporting.reproduce.columns import Column
from onedomain.reporting.reproduce.result import Result, ResultRow
from onedomain.reporting.table import GAP, NOT_RUN, one_line


def write_files(result: Result, out: Path) -> list[Path]:
    """table.md, table.tex, table.csv and table.json in a folder. Each says by itself what it is of."""
    shown = tables(result)
    written = []
    for suffix, text in {
        "md": f"{as_markdown(*shown)}\n```\n{result.command}\n```\n",
        "tex": as_latex(*shown, comments=[result.command]),
        "csv": as_csv(result),
        "json": json.dumps(as_json(result), indent=2, ensure_ascii=False) + "\n",
    }.items():
        written.append(out / f"table.{suffix}")
        write_atomically(written[-1], text)
    return written


def tables(result: Result) -> list[model.Table]:
    """One for each group of columns. The first has the title, steps, seeds and minutes; the last has the notes."""
    groups: dict[str, list[Column]] = {}
    for column in result.table.columns:
        groups.setdefault(column.group, []).append(column)
    title = f"{result.table.title}; REDUCED protocol" if result.scale.reduced else result.table.title
    unit, which = "Draws" if result.table.few_shot else "Seeds", ", ".join(map(str, result.seeds))
    made_with = f" with {', '.join(map(' '.join, result.versions.items()))}" if result.versions else ""
    failed = [f"Failed: {failure.name} ({failure.error})." for failure in result.failures]
    notes = [*failed, *result.notes, f"{unit} {which}; made {result.date}{made_with}."]
    found = []
    for place, (group, columns) in enumerate(groups.items()):
        facts = [{} if place else _facts(result, row) for row in result.rows]
        found.append(
            model.Table(
                title="" if place else title,
                corner=f"method, {group}" if group else "method",
                columns=[*model.numbers(*facts[0]), *(model.Column(each.title, unit=each.unit) for each in columns)],
                rows=list(_rows(result, columns, facts)),
                notes=notes if place == len(groups) - 1 else (),
                id=f"{result.table.name}-{result.scale.name}",
            )
        )
    return found


def _facts(result: Result, row: ResultRow) -> dict[str, model.Cell]:
    """What stands beside the numbers, unless it is one of them."""
    there, asked, few_shot = len(row.seeds), len(row.asked), result.table.few_shot
    seeds = GAP if row.row.not_run else f"{there}" if there == asked else f"{there} of {asked}"
    cells = {"shots": model.text(row.row.shots)} if few_shot else {}
    cells |= {"steps": model.count(row.steps), "draws" if few_shot else "seeds": model.Cell(seeds, there)}
    cells["minutes"] = model.number(row.minutes, 1)
    columns = [column.name for column in result.table.columns]
    return {name: cell for name, cell in cells.items() if name not in columns}


def _rows(result: Result, columns: list[Column], facts: list[dict[str, model.Cell]]) -> Iterator[model.Row]:
    """Ours and, below it, the paper's and the difference."""
    section, empty = "", [model.Cell("")] * len(facts[0])
    for row, about in zip(result.rows, facts, strict=True):
        if row.row.section != section:
            section = row.row.section
            yield model.Row(section, kind=model.SECTION)
        pairs = [(row.cells[column.name], column.decimals) for column in columns]
        ours = list(about.values())
        for cell, decimals in pairs:
            gap, spread = cell.gap or (NOT_RUN if row.row.not_run else GAP), model.deviation(cell.deviation, decimals)
            ours.append(model.number(cell.mean, decimals, gap=gap, spread=spread))
        yield model.Row(row.row.label, ours)
        if any(cell.paper is not None for cell, _ in pairs):
            papers = [model.number(cell.paper, decimals, gap="") for cell, decimals in pairs]
            yield model.Row("paper", [*empty, *papers], model.PAPER)
        if any(cell.difference is not None for cell, _ in pairs):
            differences = [model.difference(cell.difference, decimals) for cell, decimals in pairs]
            yield model.Row("difference", [*empty, *differences], model.DIFFERENCE)


def as_csv(result: Result) -> str:
    """A line for each number, tidy: every line says all of its number. Gaps are empty; at most four decimals."""
    rows: list[dict[str, Any]] = [
        {
            "table": result.table.name,
            "scale": result.scale.name,
            "protocol": NOT_RUN if row.row.not_run else "reduced" if result.scale.reduced else "whole",
            "section": row.row.section,
            "benchmark": result.table.benchmark_of(row.row),
            "row": row.row.label,
            "method": row.row.key,
            "shots": row.row.shots,
            "column": column.name,
            "unit": column.unit,
            "mean": cell.mean,
            "deviation": cell.deviation,
            "paper": cell.paper,
            "difference": cell.difference,
            "values": " ".join(f"{value:.4f}" for value in cell.values),
            "seeds": " ".join(map(str, row.seeds)),
            "steps": row.steps,
            "minutes": row.minutes,
            "notes": " ".join(result.notes),
            "date": result.date,
            "versions": "; ".join(f"{name} {version}" for name, version in result.versions.items()),
            "command": result.command,
        }
        for row in result.rows
        for column in result.table.columns
        for cell in [row.cells[column.name]]
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_plain(value) for value in row.values()])
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A cell that is what it says: a spreadsheet would compute a text that begins like a formula."""
    if isinstance(value, float):
        return round(value, 4)
    if not isinstance(value, str):
        return value
    return re.sub(r"^([=+@]|-(?!\d))", r"'\1", one_line(value))


def as_json(result: Result) -> dict[str, Any]:
    return {
        "table": result.table.name,
        "title": result.table.title,
        "benchmarks": list(result.table.benchmarks),
        "metric": result.table.metric,
        "scale": result.scale.name,
        "reduced": result.scale.reduced,
        "seeds": list(result.seeds),
        "columns": [
            {"name": column.name, "title": column.title, "unit": column.unit} for column in result.table.columns
        ],
        "rows": [
            {
                "label": row.row.label,
                "section": row.row.section,
                "benchmark": result.table.benchmark_of(row.row),
                "method": row.row.method,
                "settings": {**row.row.recipe_settings, **row.row.settings},
                "recipe": row.row.recipe or None,
                "run": not row.row.not_run,
                "shots": row.row.shots,
                "adaptation": row.row.adaptation.method if row.row.adaptation else None,
                "steps": row.steps,
                "seeds": list(row.seeds),
                "minutes": row.minutes,
                "cells": {
                    name: {each: getattr(cell, each) for each in ("mean", "deviation", "values", "paper", "difference")}
                    for name, cell in row.cells.items()
                },
            }
            for row in result.rows
        ],
        "failed": [{"run": each.name, "error": each.error, "log": str(each.log)} for each in result.failures],
        "data": [dict(each) for each in result.data],
        "notes": list(result.notes),
        "versions": dict(result.versions),
        "date": result.date,
        "command": result.command,
    }
