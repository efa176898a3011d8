"""Tables in the terminal. Names are folded where room is short, and numbers never."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from onedomain.reporting.table import DIFFERENCE, GROUP_MEAN, MEAN, PAPER, SECTION, Table, one_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable

STYLES = {SECTION: "bold", MEAN: "bold", GROUP_MEAN: "italic", PAPER: "italic dim", DIFFERENCE: "dim"}
INDENTED = (PAPER, DIFFERENCE)
PIPE_WIDTH = 140  # of a pipe or a file, which have room: else they would get 80 columns


def show(*tables: Table, width: int = PIPE_WIDTH) -> None:
    """Print tables, each with its notes below; `width` counts where the output is not a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else width, highlight=False)
    for table in tables:
        console.print(_table(table), crop=False)  # a number without any room is not cut either
        for note in table.notes:
            console.print(Text(one_line(note)), soft_wrap=True)


def _table(table: Table) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    # Texts, not strings: names are shown as they are, without markup and emoji.
    title = Text(one_line(table.title)) if table.title else None
    shown = RichTable(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    lines = [list(map(one_line, table.texts(row))) for row in table.rows]
    numbers = [False, *(column.number for column in table.columns)]
    for place, heading in enumerate(map(one_line, table.headings)):
        longest = max((len(texts[place]) for texts in lines), default=0)
        if numbers[place]:  # a heading that is longer may take two lines
            whole = len(heading) <= longest
            shown.add_column(Text(heading), justify="right", overflow="fold", no_wrap=whole, min_width=longest)
        else:
            shown.add_column(Text(heading), overflow="fold")
    for row, texts in zip(table.rows, lines, strict=True):
        if row.apart:
            shown.add_section()
        first = f"  {texts[0]}" if row.kind in INDENTED else texts[0]
        shown.add_row(Text(first), *map(Text, texts[1:]), style=STYLES.get(row.kind, ""))
    return shown
