"""Tables in the terminal. Names are folded where room is short, and numbers never."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import TYPE_CHECKING

from onedomain.reporting.table import DIFFERENCE, GROUP_MEAN, MEAN, PAPER, PLAIN, SECTION, Table, one_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable

STYLES = {
    PLAIN: "",
    SECTION: "bold",
    MEAN: "bold",
    GROUP_MEAN: "italic",
    PAPER: "italic dim",
    DIFFERENCE: "dim",
}
INDENTED = (PAPER, DIFFERENCE)
SHORT = 8  # no heading is folded to less
PIPE_WIDTH = 140  # of a pipe or a file, which have room: else they would get 80 columns


def show(*tables: Table, width: int = PIPE_WIDTH) -> None:
    """Print tables, each with its notes below; `width` counts where the output is not a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else width, highlight=False)
    for table in tables:
        shown = _table(table)
        if console.measure(shown).minimum > console.width:
            shown = _table(table, fold_headings=True)
        console.print(shown, crop=False)  # a number that has no room at all is not cut either
        for note in table.notes:
            console.print(Text(one_line(note)), soft_wrap=True)


def _table(table: Table, fold_headings: bool = False) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    # Texts, not strings: names are shown as they are, without markup and emoji.
    title = Text(one_line(table.title)) if table.title else None
    shown = RichTable(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    lines = [(row, list(map(one_line, table.texts(row)))) for row in table.rows]
    shown.add_column(Text(one_line(table.corner)), overflow="fold")
    for place, column in enumerate(table.columns, start=1):
        heading = one_line(column.heading)
        longest = max((len(texts[place]) for _, texts in lines), default=0)
        if column.number:
            heading = fill(heading, max(longest, SHORT)) if fold_headings else heading
            shown.add_column(Text(heading), justify="right", no_wrap=True, overflow="fold", min_width=longest)
        else:
            shown.add_column(Text(heading), overflow="fold")
    for row, texts in lines:
        if row.apart:
            shown.add_section()
        first = f"  {texts[0]}" if row.kind in INDENTED else texts[0]
        shown.add_row(Text(first), *map(Text, texts[1:]), style=STYLES[row.kind])
    return shown
