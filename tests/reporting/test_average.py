"""One meaning of "average unseen": the page, the figures and the tables say the same number."""

from __future__ import annotations

import pytest

from onedomain.reporting.average import average, mean, shared_domains
from onedomain.reporting.comparison import compare
from onedomain.reporting.figures.domains import accuracy
from onedomain.reporting.page.tables import accuracy_table
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from tests.reporting.page.made import made_rows, made_run

SCORES = {
    "erm": {"mnist": 0.98, "svhn": 0.3, "mnist-m": 0.5, "syn": 0.4, "usps": 0.8},
    "sdg": {"mnist": 0.97, "svhn": 0.4, "mnist-m": 0.6, "usps": 0.9},  # lacks one
}
SHARED = {"erm": (0.3 + 0.5 + 0.8) / 3, "sdg": (0.4 + 0.6 + 0.9) / 3}


def made(method):
    told = made_run({}, method, benchmark="digits", rows=[]).manifest
    of_run = {"method": method, "seed": 0, "settings": told.settings, "usually": told.usually}
    given = {**of_run, "trained_on": "digits", "source": told.source.fingerprint}
    rows = made_rows(SCORES[method], "digits", seen=["mnist"], **given)
    return made_run({}, method, benchmark="digits", rows=rows)


def test_where_a_run_lacks_a_domain_page_figures_and_table_say_the_same_average():
    runs = [made("erm"), made("sdg")]
    page = {row.title: row.cells[0].value / 100 for row in accuracy_table(compare(runs, "digits")).rows}
    assert page == pytest.approx({"ERM": SHARED["erm"], "SDG": SHARED["sdg"]})
    (axes,) = accuracy(runs, "digits").axes
    figure = {line.get_label(): line[0].get_xdata()[-1] for line in axes.containers}
    assert figure == pytest.approx(page)
    rows = [row for run in runs for row in run.results]
    result = tabulate(TABLES["digits"], SCALES["full"], rows, command="x")
    table = {row.row.label: row.cells["average"].mean for row in result.rows if row.seeds}
    assert table == pytest.approx({title: 100 * value for title, value in page.items()})


def test_other_images_of_a_domain_are_not_shared():
    one = {name: {"accuracy": {"value": 0.5, "data": name}} for name in "ab"}
    other = {**one, "b": {"accuracy": {"value": 0.9, "data": "others"}}}
    assert shared_domains([one, one]) == ["a", "b"]
    assert shared_domains([one, other]) == ["a"]
    assert average(other, "ab", "accuracy") == pytest.approx(0.7)
    assert average(other, "abc", "accuracy") is None
    assert (mean([]), mean([1.0, None]), shared_domains([])) == (None, None, [])
