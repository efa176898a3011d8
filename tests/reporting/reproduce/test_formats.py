from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from onedomain.reporting.render.latex import as_latex, escaped
from onedomain.reporting.render.markdown import as_markdown
from onedomain.reporting.render.terminal import show
from onedomain.reporting.reproduce.declare import Row
from onedomain.reporting.reproduce.formats import as_csv, as_json, tables, write_files
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.runs.job import Ended
from tests.reporting.reproduce.records import records

QUICK = SCALES["quick"]
COMMAND = "onedomain reproduce ablation --scale quick --seeds 2"
SCORES = {"svhn": 0.4010, "mnist-m": 0.60, "usps": 0.75}


def made(name="ablation", **changes):
    table = TABLES[name]
    rows = [
        *records(table, QUICK, Row("", "sdg"), 0, SCORES, **changes),
        *records(table, QUICK, Row("", "sdg"), 1, {**SCORES, "svhn": 0.4610}, **changes),
        *records(table, QUICK, Row("", "sdg", {"beta": 0.0}), 0, SCORES, **changes),
    ]
    failures = [Ended("sdg-beta-0-1", Path("logs/sdg-beta-0-1.log"), 0.0, "5% of a_b & c is NaN {x}")]
    return tabulate(table, QUICK, rows, seeds=range(2), failures=failures, command=COMMAND)


def test_csv_read_back_has_one_line_a_number_and_all_that_belongs_to_it():
    lines = list(csv.DictReader(io.StringIO(as_csv(made()))))
    assert len(lines) == 4 * 5
    [svhn] = [line for line in lines if line["method"] == "sdg" and line["column"] == "svhn"]
    assert float(svhn["mean"]) == pytest.approx(43.1)
    assert float(svhn["deviation"]) == pytest.approx(4.2426)
    assert float(svhn["paper"]) == 42.55
    assert float(svhn["difference"]) == pytest.approx(0.55)
    assert svhn["values"].split() == ["40.1000", "46.1000"]
    assert (svhn["seeds"], svhn["steps"], svhn["minutes"]) == ("0 1", "1000", "2.0")
    assert svhn["protocol"] == "reduced"
    assert "Reduced protocol" in svhn["notes"]
    assert "onedomain 0.1.0" in svhn["versions"]
    assert svhn["command"] == COMMAND
    assert svhn["date"].startswith("20")
    [gap] = [line for line in lines if line["method"] == "sdg:alpha=0" and line["column"] == "svhn"]
    assert (gap["mean"], gap["paper"], gap["difference"], gap["seeds"]) == ("", "41.36", "", "")


@pytest.mark.parametrize(
    ("text", "cell"), [("=1+1", "'=1+1"), ("-cmd", "'-cmd"), ("-1.5 2", "-1.5 2"), ("a\n\x1b", "a \\x1b")]
)
def test_a_cell_is_no_formula_and_one_line(text, cell):
    result = replace(made(), command=text)
    assert {line["command"] for line in csv.DictReader(io.StringIO(as_csv(result)))} == {cell}


def test_json_read_back_is_the_whole_table():
    document = json.loads(json.dumps(as_json(made()), allow_nan=False))
    assert document["reduced"] is True
    assert document["seeds"] == [0, 1]
    assert [row["label"] for row in document["rows"]] == [row.label for row in TABLES["ablation"].rows]
    sdg = document["rows"][-1]
    assert sdg["cells"]["average"]["mean"] == pytest.approx((58.3667 + 60.3667) / 2, abs=1e-3)
    assert sdg["cells"]["syn"] == {"mean": None, "deviation": None, "values": [], "paper": 48.95, "difference": None}
    assert document["rows"][0]["settings"] == {"beta": 0.0}
    assert document["failed"][0]["run"] == "sdg-beta-0-1"
    assert document["data"][0] == {"domain": "svhn", "images": 100, "note": "", "fingerprint": "of svhn"}


def test_markdown_has_the_papers_row_and_the_difference_below_ours():
    text = as_markdown(*tables(made()))
    lines = text.splitlines()
    assert lines[0].endswith("; REDUCED protocol")
    assert lines[2].startswith("| method | steps | seeds | minutes | SVHN (%) |")
    start = next(place for place, line in enumerate(lines) if line.startswith("| SDG |"))
    assert lines[start].startswith("| SDG | 1,000 | 2 | 2.0 | 43.10 ± 4.24 | 60.00 ± 0.00 | – |")
    assert lines[start + 1].startswith("| *paper* |  |  |  | *42.55* | *67.94* | *48.95* |")
    assert lines[start + 2].startswith("| difference |  |  |  | +0.55 | −7.94 |  |")
    assert "| SDG without L\\_relax | 1,000 | 1 of 2 | 1.5 | 40.10 |" in text  # and no ±
    assert "Failed: sdg-beta-0-1" in text
    assert len({line.replace("\\|", "").count("|") for line in lines if line.startswith("|")}) == 1


@pytest.mark.parametrize("name", TABLES)
def test_latex_is_balanced_escaped_and_has_as_many_cells_in_every_row(name):
    text = as_latex(*tables(made(name)), comments=[COMMAND])
    groups = {column.group for column in TABLES[name].columns}
    assert re.findall(r"\\(?:begin|end)\{(\w+)\}", text) == ["table", *["tabular"] * 2 * len(groups), "table"]
    for part in text.split(r"\begin{tabular}")[1:]:
        rows = [line for line in part.splitlines() if line.endswith(r"\\")]
        columns = re.search(r"@\{\}(lr*)@\{\}", part)[1]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
    printed = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)%", printed)  # would swallow the rest of its line
    unescaped = re.sub(r"\\[{}]", "", printed)
    assert unescaped.count("{") == unescaped.count("}")
    assert printed.count("$") % 2 == 0
    assert not re.search(r"(?<!\\)_", re.sub(r"\\label\{.*?\}", "", printed))
    assert printed.isascii()  # what pdflatex cannot print is written as commands
    assert "REDUCED" in printed
    assert f"% {COMMAND}" in text


def test_latex_escapes_what_means_something_to_it():
    assert escaped("a_b & 5% {x} #1 $ ~ ^ \\") == (
        r"a\_b \& 5\% \{x\} \#1 \$ \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    assert escaped("α = 1 ± −2") == r"$\alpha$ = 1 $\pm$ $-$2"


def test_sections_of_the_curves_stand_above_their_rows(capsys):
    result = made("curves")
    text = as_markdown(*tables(result))
    assert [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| **")] == [
        "**K**",
        "**α**",
        "**β**",
    ]
    assert r"\textit{$\beta$}" in as_latex(*tables(result))
    show(*tables(result), width=160)
    printed = capsys.readouterr().out
    assert "K = 3" in printed
    assert "43.10 ± 4.24" in printed
    assert "REDUCED" in printed
    assert "+0.55" in printed


def test_all_files_are_written(tmp_path):
    write_files(made(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"table.md", "table.tex", "table.csv", "table.json"}
    assert json.loads((tmp_path / "table.json").read_text())["table"] == "ablation"
    assert f"\n```\n{COMMAND}\n```\n" in (tmp_path / "table.md").read_text()
    assert f"\n% {COMMAND}\n" in (tmp_path / "table.tex").read_text()
