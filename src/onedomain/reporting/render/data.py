"""Tables as data: values, not texts. Sections are a field of their rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from onedomain.reporting.table import SECTION, Row, Table


def as_csv(table: Table) -> str:
    """One line per row, its section first if there are any. Gaps are empty; numbers have four decimals at most."""
    sections = any(row.kind == SECTION for row in table.rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(["section"] if sections else []), *table.headings])
    for section, row in _rows(table):
        values = [round(each.value, 4) if isinstance(each.value, float) else each.value for each in row.cells]
        writer.writerow([*([section] if sections else []), row.title, *values])
    return text.getvalue()


def as_json(table: Table) -> str:
    """The values of a row stand in the order of the columns, since two may have one name. Gaps are null."""
    document = {
        "title": table.title,
        "rows_are": table.corner,
        "columns": [{"name": column.name, "unit": column.unit} for column in table.columns],
        "rows": [
            {"title": row.title, "kind": row.kind, "section": section, "values": [cell.value for cell in row.cells]}
            for section, row in _rows(table)
        ],
        "notes": list(table.notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rows(table: Table) -> Iterator[tuple[str, Row]]:
    section = ""
    for row in table.rows:
        if row.kind == SECTION:
            section = row.title
        else:
            yield section, row
