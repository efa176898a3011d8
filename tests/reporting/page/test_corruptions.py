"""The report of a benchmark whose targets are corruptions: few columns, heat maps, mCE and RmCE."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.reporting.comparison import compare
from onedomain.reporting.corruption_tables import corruptions
from onedomain.reporting.estimates import Estimate, over_domains
from onedomain.reporting.page.answers import galleries
from onedomain.reporting.page.page import render
from onedomain.reporting.page.tables import accuracy_table
from onedomain.reporting.table import GROUP_MEAN, MEAN
from tests.reporting.page.made import adapted, made_outcome, made_rows, made_run, write_run

LITE = "cifar10-c-lite"
CATEGORY = {"weather": 0.1, "blur": 0.2, "noise": 0.3, "digital": 0.4}


def scores(worst=None, clean=0.9):
    """0.05 more at each severity below the worst; as CATEGORY has it, or of all `worst`."""
    by_kind = {kind: CATEGORY[name] if worst is None else worst for name, kinds in CATEGORIES.items() for kind in kinds}
    found = {f"{kind}-{level}": value + 0.05 * (5 - level) for kind, value in by_kind.items() for level in SEVERITIES}
    return {"cifar10": clean, **found}


def run(method, accuracies, seed=0, note="", **settings):
    rows = made_rows(accuracies, LITE, seen=("cifar10",), note=note)
    return made_run(None, method, seed, LITE, rows=rows, **settings)


def texts(found, title):
    [row] = [row for row in found.table.rows if row.title == title]
    return dict(zip([column.name for column in found.table.columns], [cell.text for cell in row.cells], strict=True))


def row_of(table, title):
    [row] = [row for row in table.rows if row.title == title]
    return row


def test_the_main_table_has_categories_and_averages_and_not_95_columns():
    table = accuracy_table(compare([run("erm", scores()), run("sdg", scores(0.5))], LITE))
    names = [column.name for column in table.columns]
    assert names == ["average", "4 categories", "weather", "blur", "noise", "digital", "cifar10"]
    assert [column.note for column in table.columns][:4] == ["of 95 unseen", "their mean", "of 15", "of 25"]
    sdg, erm = table.rows
    assert (sdg.title, erm.title) == ("SDG", "ERM")
    # 0.1 on the mean of five severities; the average is over corruptions, 3, 5, 4 and 7 of them.
    assert [cell.value / 100 for cell in erm.cells] == pytest.approx(
        [(3 * 0.1 + 5 * 0.2 + 4 * 0.3 + 7 * 0.4) / 19 + 0.1, 0.35, 0.2, 0.3, 0.4, 0.5, 0.9]
    )
    assert [cell.mark for cell in sdg.cells[:6]] == ["best"] * 6


def test_an_average_over_changed_copies_of_the_same_images_is_no_surer_than_one_of_them():
    two = [Estimate((0.5,), 0.04), Estimate((0.7,), 0.04)]
    assert over_domains(two).of_images == pytest.approx(0.02)
    assert over_domains(two, same_images=True).of_images == pytest.approx(0.04)
    table = accuracy_table(compare([run("erm", scores(0.5)), run("sdg", scores(0.51))], LITE))
    assert table.rows[1].cells[0].mark == "close"  # 1,000 images, not 95,000
    assert table.rows[1].cells[2].mark == "close"


def test_heat_maps_hold_every_corruption_at_every_severity_and_means_over_seeds():
    found = corruptions(compare([run("sdg", scores(0.2)), run("sdg", scores(0.4), 1), run("erm", scores())], LITE), "p")
    assert [each.title for each in found.maps] == ["SDG", "ERM"]
    sdg, erm = found.maps
    assert [row.title for row in sdg.rows if row.kind == GROUP_MEAN] == list(CATEGORIES)
    assert [row.title for row in sdg.rows if row.title in KINDS] == list(KINDS)
    assert [cell.text for cell in row_of(sdg, "fog").cells] == ["50", "45", "40", "35", "30", "40"]
    assert [cell.value for cell in row_of(erm, "noise").cells] == pytest.approx([50, 45, 40, 35, 30, 40])
    assert row_of(erm, "cifar10 (clean)").cells[-1].text == "90"
    corruptions_mean, categories_mean = (row for row in erm.rows if row.kind == MEAN)
    assert corruptions_mean.cells[4].value == pytest.approx(100 * (0.3 + 1 + 1.2 + 2.8) / 19)
    assert categories_mean.cells[4].value == pytest.approx(25)


def test_what_was_not_scored_is_a_gap():
    some = {domain: value for domain, value in scores().items() if not domain.startswith("fog-3")}
    found = corruptions(compare([run("erm", some)], LITE), "p")
    assert [cell.text for cell in row_of(found.maps[0], "fog").cells] == ["30", "25", "–", "15", "10", "–"]


def test_mce_and_rmce_are_relative_to_the_erm_run_of_the_same_seed():
    runs = [
        run("erm", scores(0.5)),
        run("sdg", scores(0.6, clean=0.85)),
        run("erm", scores(0.2), 1),
        run("sdg", scores(0.6, clean=0.85), 1),
    ]
    found = corruptions(compare(runs, LITE), "p")
    sdg = texts(found, "SDG")
    assert sdg["mCE at 5"] == f"{(0.4 / 0.5 + 0.4 / 0.8) / 2:.3f}"
    assert sdg["RmCE at 5"] == f"{(0.25 / 0.4 + 0.25 / 0.7) / 2:.3f}"
    assert sdg["mCE"] == f"{(0.3 / 0.4 + 0.3 / 0.7) / 2:.3f}"  # errors over all severities are 0.1 less
    assert (sdg["clean"], sdg["level 1"], sdg["level 5"], sdg["mean"]) == ("85.0", "80.0", "60.0", "70.0")
    assert texts(found, "ERM")["mCE"] == "1.000"
    assert found.remarks == []


def test_a_missing_erm_run_is_named_with_its_command():
    runs = [run("erm", scores(0.5)), run("sdg", scores(0.6)), run("sdg", scores(0.6), 1)]
    found = corruptions(compare(runs, LITE), "p")
    assert texts(found, "SDG")["mCE at 5"] == "0.800"  # of seed 0
    [remark] = found.remarks
    assert remark.startswith("mCE and RmCE of SDG, seed 1: no ERM run with these settings is among the given")
    assert re.search(r"onedomain train --benchmark cifar10-c-lite --method erm --seed 1 .*--out runs/erm-1$", remark)
    other = corruptions(compare([run("erm", scores(0.5), learning_rate=0.3), run("sdg", scores(0.6))], LITE), "p")
    assert texts(other, "SDG")["mCE"] == "–"


def test_mce_is_not_relative_to_an_adapted_run_of_erm():
    erm, sdg = run("erm", scores(0.5)), run("sdg", scores(0.6))
    found = corruptions(compare([adapted(erm), sdg], LITE), "p")
    assert texts(found, "SDG")["mCE"] == "–"
    assert texts(corruptions(compare([adapted(erm), erm, sdg], LITE), "p"), "SDG")["mCE at 5"] == "0.800"


def test_other_benchmarks_have_no_heat_map_and_columns_for_their_domains():
    comparison = compare([made_run({"home": 0.9, "fog-1": 0.5, "fog-2": 0.4})], "bench")
    assert corruptions(comparison, "p") is None
    assert [column.name for column in accuracy_table(comparison).columns] == ["average", "fog-1", "fog-2", "home"]


class Tables(HTMLParser):
    """Which cells and headings every heat map of a page has."""

    def __init__(self):
        super().__init__()
        self.maps, self.inside = [], False

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "table":
            self.inside = given.get("class") == "heat"
            if self.inside:
                self.maps.append({"td": 0, "row": 0, "col": 0, "coloured": 0})
        if self.inside and tag == "td":
            self.maps[-1]["td"] += 1
            self.maps[-1]["coloured"] += given.get("style", "").startswith("--share:")
        if self.inside and tag == "th":
            self.maps[-1][given["scope"]] += 1


def test_the_page_has_a_table_with_headings_for_every_method_and_says_what_the_images_are():
    methods = ("erm", "sdg", "gud", "augmix", "randconv")
    page = render([run(method, scores(0.3), note="regenerated") for method in methods])
    tables = Tables()
    tables.feed(page)
    rows = 1 + 19 + 4 + 2  # of clean images there is one number
    assert tables.maps == [{"td": 6 * rows, "row": rows, "col": 7, "coloured": 6 * rows - 5}] * 5
    assert "The corrupted images: regenerated." in page
    assert 'href="#part-1-corruptions"' in page
    assert "96 domains</summary>" in page
    assert page.count('<th scope="col" class="number') < 50 + 5 * 6  # the heat maps have six each
    assert "-corruptions" not in render([made_run({"home": 0.9, "night": 0.5})])


def test_images_of_one_corruption_a_category_are_shown(tmp_path):
    rows = made_rows(scores(), LITE, seen=("cifar10",))
    made = made_run(None, "erm", 0, LITE, rows=rows, folder=tmp_path / "erm")
    names = ["cifar10", "fog-5", "fog-4", "snow-5", "zoom-blur-5", "pixelate-5"]
    answers = [made_outcome(name, [0, 1, 2], [0, 1, 1], [0.1, 0.2, 0.9], unseen=name != "cifar10") for name in names]
    write_run(tmp_path / "erm", made, answers, benchmark=LITE)
    shown = [gallery["domain"] for gallery in galleries(compare([made], LITE))]
    assert shown == ["cifar10", "fog-5", "zoom-blur-5"]
