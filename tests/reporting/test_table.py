from __future__ import annotations

import subprocess
import sys

import pytest

from onedomain.reporting.table import (
    BEST,
    SECTION,
    Cell,
    Column,
    Row,
    Table,
    count,
    difference,
    number,
    numbers,
    one_line,
    percent,
)


def test_numbers_become_text_in_one_way_and_keep_their_value():
    assert (percent(0.4806, 1).text, percent(0.4806, 1).value) == ("48.1", pytest.approx(48.06))
    assert (number(1 / 3).text, number(1 / 3).value) == ("0.333", pytest.approx(1 / 3))
    assert (count(12_000).text, count(12_000).value) == ("12,000", 12_000)
    assert (difference(-1.5).text, difference(-1.5).value) == ("−1.50", -1.5)


@pytest.mark.parametrize(
    "cell", [percent(None), number(None), number(float("nan")), percent(float("nan")), count(None)]
)
def test_what_is_not_known_is_a_gap_without_a_value(cell):
    assert (cell.text, cell.value) == ("–", None)


def test_a_line_of_texts_has_one_for_each_heading_and_holds_marks_and_notes():
    row = Row("SDG", [Cell("51.0", 51.0, BEST, spread="± 1.4", paper="50.12")], note="2 seeds", badge="reduced")
    table = Table("t", "method", [Column("average", unit="%")], [Row("K", kind=SECTION), row])
    assert table.headings == ["method", "average (%)"]
    assert [table.texts(each) for each in table.rows] == [
        ["K", ""],
        ["SDG reduced 2 seeds", "51.0 ★ ± 1.4 paper 50.12"],
    ]


def test_a_name_is_one_line_that_a_screen_does_not_obey():
    assert one_line("a\r\nb\tc\u2028d") == "a  b c d"
    assert one_line("\x1b]0;title\x07\u202e\udc80\x00") == "\\x1b]0;title\\x07\\u202e\\udc80\\x00"
    assert one_line("naïve 猫 ×\u00a0α") == "naïve 猫 ×\u00a0α"


def test_a_table_needs_neither_torch_nor_rich_nor_jinja():
    code = """
import sys
from onedomain.reporting.render import html, latex, markdown, terminal
from onedomain.reporting.table import Table
print(sorted({"torch", "rich", "jinja2"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_columns_are_of_numbers_unless_said_otherwise():
    assert [column.number for column in numbers("a", "b")] == [True, True]
