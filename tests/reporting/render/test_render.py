"""Every renderer on one table whose names try to break it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from onedomain.reporting.render.html import as_html
from onedomain.reporting.render.latex import as_latex
from onedomain.reporting.render.markdown import as_markdown
from onedomain.reporting.render.terminal import show
from onedomain.reporting.table import (
    BEST,
    CLOSE,
    GROUP_MEAN,
    MEAN,
    PAPER,
    SECTION,
    Cell,
    Column,
    Row,
    Table,
    number,
    numbers,
    percent,
    text,
    words,
)

NASTY = "a|b *c* 5% & <b>x</b> _d_ [bold]e[/bold] :smile: `f` \"g\" 'h' {i} $j$ #k ~l ^m \\n"
CONTROL = "red\x1b[31m\nnext\u202e\udc80"
ONE_LINE = "red\\x1b[31m next\\u202e\\udc80"


def made(name=NASTY):
    rows = [
        Row(name, kind=SECTION),
        Row(name, [percent(0.123456, 1), Cell("–"), text(name)], note="seed 0", badge="reduced"),
        Row("paper", [Cell("12.00", 12.0), Cell(""), Cell("")], PAPER),
        Row("weather", [number(3.0), Cell("9", 9, BEST), text("y")], GROUP_MEAN),
        Row("mean", [number(2.0), Cell("8", 8, CLOSE, spread="± 1.0", paper="7.00"), text("z")], MEAN, apart=True),
    ]
    columns = [Column(name, unit="%"), Column("other", note="of 3"), *words("remark")]
    return Table(name, "method", columns, rows, [f"Note of {name}."], id="t-1")


def printed(capsys, *tables, **options):
    show(*tables, **options)
    return capsys.readouterr().out


@pytest.mark.parametrize("name", [NASTY, CONTROL])
def test_the_terminal_shows_names_as_they_are_on_their_line(capsys, name):
    shown = ONE_LINE if name == CONTROL else name
    lines = [line.strip() for line in printed(capsys, made(name), width=400).splitlines()]
    assert lines[0] == shown
    assert lines[-1] == f"Note of {shown}."
    [row] = [line for line in lines if "reduced" in line]
    assert re.split(r" {3,}", row) == [f"{shown} reduced seed 0", "12.3", "–", shown]
    assert not any(character in "".join(lines) for character in "\x1b\u202e\udc80")


def test_the_terminal_sets_means_apart_and_indents_the_paper(capsys):
    lines = printed(capsys, made("x")).splitlines()
    [mean] = [place for place, line in enumerate(lines) if line.strip().startswith("mean ")]
    assert lines[mean - 1].strip() == ""
    assert lines[mean - 2].strip().startswith("weather")
    assert any(line.startswith("   paper") for line in lines)
    assert "8 ≈ ± 1.0 paper 7.00" in lines[mean]


@pytest.mark.parametrize("width", [30, 40, 60])
def test_the_terminal_folds_names_and_headings_and_never_a_number(capsys, width):
    rows = [Row("a-very-long-name-" * 5, [Cell("43.10 ± 4.24", 43.1)])]
    out = printed(capsys, Table("", "method", numbers("a heading of several words"), rows), width=width)
    assert "43.10 ± 4.24" in out
    assert max(map(len, out.splitlines())) <= width
    for word in ("a heading", "words", "method"):
        assert word in out
    names = "".join(line.replace("43.10 ± 4.24", "").strip() for line in out.splitlines())
    assert "a-very-long-name-" * 5 in names


def test_a_number_without_any_room_is_not_cut(capsys):
    row = Row("name", [Cell(f"{place}3.10 ± 4.24", 43.1) for place in range(5)])
    out = printed(capsys, Table("", "method", numbers(*"abcde"), [row]), width=30)
    assert all(f"{place}3.10 ± 4.24" in out for place in range(5))


class Parsed(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.data, self.values = [], "", []
        self.feed(str(page))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.values += [value for name, value in attributes if name == "data-value"]

    def handle_data(self, data):
        self.data += data


def test_html_escapes_names_and_has_values_to_sort_by():
    page = str(as_html(made()))
    parsed = Parsed(page)
    assert "b" not in parsed.tags
    assert parsed.data.count(NASTY) == 6  # title, heading, section, row, cell, note
    assert parsed.values[:4] == [NASTY, "12.3456", "", NASTY]
    assert 'class="mark" aria-hidden="true">★' in page
    assert "± 1.0" in page
    assert "paper 7.00" in page
    assert page.count("<tbody>") == page.count("</tbody>") == 1
    assert as_html(made(CONTROL)).encode()  # a file name of bytes that are no text can be written
    assert ONE_LINE in as_html(made(CONTROL))


def test_html_has_a_body_for_each_section_and_sorts_only_what_may_be_sorted():
    rows = [
        Row(name, kind=kind) if kind else Row(name, [Cell("5", 50.0)])
        for name, kind in (("a", SECTION), ("x", ""), ("b", SECTION), ("y", ""))
    ]
    page = as_html(Table("heat", "severity", numbers("1"), rows, look="heat", sortable=False))
    assert page.count("<tbody>") == page.count("</tbody>") == page.count('scope="rowgroup"') == 2
    assert "<button" not in page
    assert page.count('style="--share:50.0%"') == 2
    ordered = as_html(Table("t", "m", [Column("a", order="descending"), *words("b")], []))
    assert re.findall(r'aria-sort="(\w+)"', ordered) == ["none", "descending", "none"]
    assert ordered.count("data-text") == 2


@pytest.mark.parametrize("name", [NASTY, CONTROL])
def test_markdown_keeps_its_cells_and_shows_no_tag(name):
    written = as_markdown(made(name))
    lines = [line for line in written.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in lines} == {5}
    assert lines[1] == "|---|---:|---:|---|"
    assert not re.search(r"(?<!\\)[<`]", written.replace("\\\\", ""))
    assert len(written.splitlines()) == 11  # no name begins a line
    assert lines[4].startswith("| *paper* | *12.00* |  |")
    assert lines[6].startswith("| **mean** | **2.000** | **8 ≈ ± 1.0 paper 7.00** |")
    assert written.encode()


@pytest.mark.parametrize("name", [NASTY, CONTROL])
def test_latex_is_balanced_and_has_as_many_cells_in_every_row(name):
    written = as_latex(made(name), comments=["a\nb \\input{x}"])
    assert "% a b \\input{x}" in written
    printed = "\n".join(line for line in written.splitlines() if not line.startswith("%"))
    rows = [line for line in printed.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {3}
    bare = re.sub(r"\\[{}%$&#_]", "", printed)
    assert bare.count("{") == bare.count("}")
    assert "%" not in bare
    assert "#" not in bare
    assert bare.count("$") % 2 == 0
    assert r"\begin{tabular}{@{}lrrl@{}}" in printed
    assert r"\label{tab:t-1}" in printed
    assert printed.isascii()


def test_several_tables_stand_below_each_other_with_all_their_notes():
    first, second = made("one"), made("two")
    written = as_markdown(first, second)
    assert written.startswith("# one\n")
    assert written.endswith("- Note of one.\n- Note of two.\n")
    assert as_latex(first, second).count(r"\begin{tabular}") == 2
