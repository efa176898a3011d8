from __future__ import annotations

import base64
import xml.etree.ElementTree as ElementTree

import pytest

from onedomain.reporting.page.page import figures, render
from onedomain.runs.records import read_runs
from tests.reporting.page.made import made_outcome, made_rows, made_run, write_run

NASTY = "<script>alert('x')</script> & \"quoted\" 🌙"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    folders = []
    for method in ("erm", "sdg"):
        rows = made_rows({"home": 0.9, NASTY: 0.5}, flagged={"home": 0.1, NASTY: 0.4}, count=4)
        rows += made_rows({"elsewhere": 0.4}, "other") if method == "erm" else []
        outcome = made_outcome(NASTY, [0, 1, 0, 1], [0, 1, 2, 0], [0.1, 0.9, 0.9, 0.1])
        folders.append(write_run(folder / method, made_run({}, method, rows=rows), [outcome]))
    return read_runs(folders)


@pytest.mark.filterwarnings("error")
def test_figures_are_images_with_their_size_title_and_explanation(runs):
    drawn, not_drawn = figures(runs, "bench")
    assert {"Accuracy per domain", "Reliability", "Risk and coverage"} <= {figure["title"] for figure in drawn.values()}
    for figure in drawn.values():
        text = base64.b64decode(figure["source"].removeprefix("data:image/svg+xml;base64,")).decode()
        root = ElementTree.fromstring(text)  # well-formed, so every name in it is escaped
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not root.findall(".//{http://www.w3.org/2000/svg}script")
        width, height = (float(root.get(side).removesuffix("pt")) / 0.75 for side in ("width", "height"))
        assert (figure["width"], figure["height"]) == (pytest.approx(width, abs=1), pytest.approx(height, abs=1))
        assert figure["explanation"].endswith(".")
    assert "🌙" in base64.b64decode(drawn["accuracy"]["source"].partition(",")[2]).decode()
    assert all(reason for _, reason in not_drawn)


def test_only_runs_of_the_benchmark_are_drawn(runs):
    drawn, _ = figures(runs, "other")
    text = base64.b64decode(drawn["accuracy"]["source"].partition(",")[2]).decode()
    assert "elsewhere" in text
    assert "sdg" not in text


def test_the_page_shows_them_and_says_what_is_missing(runs):
    page = render(runs[1:])
    drawn, not_drawn = figures(runs[1:], "bench")
    assert page.count('class="paper-card"') == len(drawn) > 2
    assert f"{len(not_drawn)} not drawn" in page
    for figure in drawn.values():
        assert figure["source"] in page
