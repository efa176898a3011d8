"""A table as Markdown, LaTeX, CSV and JSON. Each says by itself what it is of."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onedomain.data.files import write_atomically
from onedomain.reporting.reproduce.columns import Column
from onedomain.reporting.reproduce.result import Cell, Result, ResultRow

GAP = "–"
NOT_RUN = "not run"  # a row of the paper's numbers alone


def write_files(result: Result, out: Path) -> list[Path]:
    """table.md, table.tex, table.csv and table.json in a folder."""
    written = []
    for suffix, text in {
        "md": as_markdown(result),
        "tex": as_latex(result),
        "csv": as_csv(result),
        "json": json.dumps(as_json(result), indent=2, ensure_ascii=False) + "\n",
    }.items():
        written.append(out / f"table.{suffix}")
        write_atomically(written[-1], text)
    return written


@dataclass(frozen=True)
class Block:
    """Columns that stand together, all of them if they have no groups; the first has what stands beside every table."""

    group: str
    columns: tuple[Column, ...]
    beside: Mapping[str, Callable[[ResultRow], str]]

    @property
    def headings(self) -> list[str]:
        named = [f"{column.title} ({column.unit})" if column.unit else column.title for column in self.columns]
        return [f"method, {self.group}" if self.group else "method", *self.beside, *named]


def blocks(result: Result) -> list[Block]:
    groups: dict[str, list[Column]] = {}
    for column in result.table.columns:
        groups.setdefault(column.group, []).append(column)
    return [
        Block(group, tuple(columns), {} if place else beside(result))
        for place, (group, columns) in enumerate(groups.items())
    ]


def beside(result: Result) -> dict[str, Callable[[ResultRow], str]]:
    """What stands beside the columns of every table, unless it is one of them."""

    def seeds(row: ResultRow) -> str:
        there, asked = len(row.seeds), len(row.asked)
        return GAP if row.row.not_run else str(there) if there == asked else f"{there} of {asked}"

    texts: dict[str, Callable[[ResultRow], str]] = {
        **({"shots": lambda row: row.row.shots} if result.table.few_shot else {}),
        "steps": lambda row: GAP if row.steps is None else f"{row.steps:,}",
        "draws" if result.table.few_shot else "seeds": seeds,
        "minutes": lambda row: GAP if row.minutes is None else f"{row.minutes:.1f}",
    }
    columns = [column.name for column in result.table.columns]
    return {name: text for name, text in texts.items() if name not in columns}


def lines(result: Result, block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each line as what it is (section, ours, paper, difference) and its texts, one a heading."""
    section, facts = "", block.beside.values()
    empty = [""] * len(facts)
    for row in result.rows:
        if row.row.section != section:
            section = row.row.section
            yield "section", [section, *empty, *[""] * len(block.columns)]
        cells = [(row.cells[column.name], column) for column in block.columns]
        numbers = [NOT_RUN if row.row.not_run else ours(*each) for each in cells]
        yield "ours", [row.row.label, *(text(row) for text in facts), *numbers]
        if any(cell.paper is not None for cell, _ in cells):
            papers = ["" if cell.paper is None else f"{cell.paper:.{column.decimals}f}" for cell, column in cells]
            yield "paper", ["paper", *empty, *papers]
        if any(cell.difference is not None for cell, _ in cells):
            yield "difference", ["difference", *empty, *(difference(*each) for each in cells)]


def ours(cell: Cell, column: Column) -> str:
    if cell.mean is None:
        return cell.gap or GAP
    mean = f"{cell.mean:.{column.decimals}f}"
    return mean if cell.deviation is None else f"{mean} ± {cell.deviation:.{column.decimals}f}"


def difference(cell: Cell, column: Column) -> str:
    if cell.difference is None:
        return ""
    return f"{cell.difference:+.{column.decimals}f}".replace("-", "−")


def remarks(result: Result) -> list[str]:
    """What stands below a table."""
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    which = ", ".join(map(str, result.seeds))
    gaps = [f"Failed: {failure.run} ({failure.error})." for failure in result.failures]
    unit = "Draws" if result.table.few_shot else "Seeds"
    return [*gaps, *result.notes, f"{unit} {which}; made {result.date}{f' with {versions}' if versions else ''}."]


def title(result: Result) -> str:
    return f"{result.table.title}; REDUCED protocol" if result.scale.reduced else result.table.title


def as_markdown(result: Result) -> str:
    def line(texts: Sequence[str], emphasis: str = "") -> str:
        marked = [f"{emphasis}{text}{emphasis}" if text else "" for text in map(_escaped_for_markdown, texts)]
        return f"| {' | '.join(marked)} |"

    marks = {"section": "**", "ours": "", "paper": "*", "difference": ""}
    text = [f"# {title(result)}"]
    for block in blocks(result):
        text += ["", line(block.headings), f"|---|{'---:|' * (len(block.headings) - 1)}"]
        text += [line(texts, marks[kind]) for kind, texts in lines(result, block)]
    text += ["", *(f"- {_escaped_for_markdown(remark)}" for remark in remarks(result))]
    return "\n".join([*text, "", "```", result.command, "```", ""])


def _escaped_for_markdown(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\|*_`<" else character for character in text)


LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\to$",
    "–": "--",
    "…": r"\dots{}",
}


def escaped(text: str) -> str:
    r"""A text as LaTeX prints it.

    >>> print(escaped("L_relax, 5% & α"))
    L\_relax, 5\% \& $\alpha$
    """
    return "".join(LATEX.get(character, character) for character in text)


def as_latex(result: Result) -> str:
    r"""A booktabs table: it needs \usepackage{booktabs} alone."""
    # A comment ends with its line: what the texts hold cannot leave it.
    above = [f"% {' '.join(text.split())}" for text in (title(result), result.command)]
    return "\n".join(
        [
            *above,
            r"% needs \usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering\small",
            rf"\caption{{{escaped(title(result))}. {escaped(' '.join(remarks(result)))}}}",
            rf"\label{{tab:{result.table.name}-{result.scale.name}}}",
            "\n\\par\\medskip\n".join(_tabular(result, block) for block in blocks(result)),
            r"\end{table}",
            "",
        ]
    )


def _tabular(result: Result, block: Block) -> str:
    body = []
    for place, (kind, texts) in enumerate(lines(result, block)):
        cells = [escaped(text) for text in texts]
        if kind == "section":
            body += [r"\midrule"] if place else []
            cells[0] = rf"\textit{{{cells[0]}}}"
        elif kind != "ours":
            cells = [rf"\quad {cells[0]}", *cells[1:]]
        body.append(" & ".join(cells) + r" \\")
    head = block.headings
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}l{'r' * (len(head) - 1)}@{{}}}}",
            r"\toprule",
            " & ".join(escaped(text) for text in head) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def as_csv(result: Result) -> str:
    """One line a row and column, tidy: every line says all of its number."""
    rows = [
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
            "mean": _rounded(cell.mean),
            "deviation": _rounded(cell.deviation),
            "paper": _rounded(cell.paper),
            "difference": _rounded(cell.difference),
            "values": " ".join(f"{value:.4f}" for value in cell.values),
            "seeds": " ".join(map(str, row.seeds)),
            "steps": "" if row.steps is None else row.steps,
            "minutes": _rounded(row.minutes),
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
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rounded(number: float | None) -> float | str:
    return "" if number is None else round(number, 4)


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
                "settings": dict(row.row.settings),
                "run": not row.row.not_run,
                "shots": row.row.shots,
                "adaptation": row.row.adaptation.method if row.row.adaptation else None,
                "steps": row.steps,
                "seeds": list(row.seeds),
                "minutes": row.minutes,
                "cells": {
                    name: {
                        "mean": cell.mean,
                        "deviation": cell.deviation,
                        "values": list(cell.values),
                        "paper": cell.paper,
                        "difference": cell.difference,
                    }
                    for name, cell in row.cells.items()
                },
            }
            for row in result.rows
        ],
        "failed": [{"run": each.run, "error": each.error, "log": each.log} for each in result.failures],
        "data": [dict(each) for each in result.data],
        "notes": list(result.notes),
        "versions": dict(result.versions),
        "date": result.date,
        "command": result.command,
    }
