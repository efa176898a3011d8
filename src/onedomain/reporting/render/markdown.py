"""Tables as Markdown."""

from __future__ import annotations

from onedomain.reporting.table import GROUP_MEAN, MEAN, PAPER, SECTION, Table, one_line

EMPHASIS = {SECTION: "**", MEAN: "**", GROUP_MEAN: "*", PAPER: "*"}


def as_markdown(*tables: Table) -> str:
    """The title of the first, every table, and all notes as a list."""
    parts = [f"# {escaped(tables[0].title)}"] if tables[0].title else []
    parts += [_grid(table) for table in tables]
    notes = [f"- {escaped(note)}" for table in tables for note in table.notes]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


def _grid(table: Table) -> str:
    rules = ("---:|" if column.number else "---|" for column in table.columns)
    rows = [_line(table.texts(row), EMPHASIS.get(row.kind, "")) for row in table.rows]
    return "\n".join([_line(table.headings), f"|---|{''.join(rules)}", *rows])


def _line(texts: list[str], emphasis: str = "") -> str:
    return f"| {' | '.join(f'{emphasis}{escaped(text)}{emphasis}' if text else '' for text in texts)} |"


def escaped(text: str) -> str:
    r"""A text that Markdown shows as it is.

    >>> print(escaped("L_relax | *a* <b>"))
    L\_relax \| \*a\* \<b>
    """
    return "".join(f"\\{character}" if character in "\\|*_`<[&~" else character for character in one_line(text))
