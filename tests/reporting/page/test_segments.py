"""The report of runs whose pixels have labels: mIoU first, and pictures."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import numpy as np
import pytest

from onedomain.errors import UserError
from onedomain.reporting.comparison import compare, refuse_old_records
from onedomain.reporting.figures.style import COLOURS
from onedomain.reporting.page.headline import headline
from onedomain.reporting.page.page import render
from onedomain.reporting.page.tables import accuracy_table
from onedomain.reporting.shown_metric import ACCURACY, MIOU
from onedomain.runs.records import read_runs
from tests.reporting.page.made import CLASSES, made_outcome, made_rows, made_run, write_run

VOID = 3
TRUTH = np.array([[[0, 0, 1, VOID]] * 2] * 2, np.int16)


def dense_run(tmp_path, method, miou, accuracy, entropy=1.0, auroc=0.8, spread=0.01):
    """Scored on `home`, where mIoU is 0.6 and the entropy 0.5, and on `dusk`, with pictures of two images."""
    rows = made_rows({"home": 0.9, "dusk": accuracy}, flagged={"home": 0.05, "dusk": 0.5}, count=2)
    rows = [row for row in rows if row["metric"] != "error_auroc"]
    for row in [row for row in rows if row["metric"] == "accuracy"]:
        away = row["domain"] == "dusk"
        value = miou if away else 0.6
        rows.append({**row, "metric": "miou", "value": value, "low": value - spread, "high": value + spread})
        rows.append({**row, "metric": "entropy", "value": entropy if away else 0.5})
        rows.append({**row, "metric": "error_auroc", "value": auroc})
        for name in CLASSES if away else CLASSES[:2]:
            rows.append({**row, "metric": f"iou/{name}", "class": name, "value": value})
    run = made_run({}, method, rows=rows)
    source = run.manifest.source.model_copy(update={"dense": True})
    run = replace(run, manifest=run.manifest.model_copy(update={"source": source}))
    outcome = replace(
        made_outcome("dusk", [0, 0], [0, 0], [0.1, 0.9]),
        labels=None,
        predicted=None,
        void=VOID,
        shares_right=np.array([0.25, 0.75], np.float32),
        mask_images=np.full((2, 2, 4, 3), 9, np.uint8),
        mask_truth=TRUTH,
        mask_predicted=np.full_like(TRUTH, 2),
        mask_uncertainty=np.full(TRUTH.shape, np.log(3), np.float16),
    )
    return write_run(tmp_path / method, run, [outcome])


@pytest.fixture
def folders(tmp_path):
    """By pixel accuracy ERM would win, by mIoU it does not."""
    return [dense_run(tmp_path, "erm", 0.30, 0.9), dense_run(tmp_path, "sdg", 0.40, 0.7)]


def test_order_marks_and_intervals_are_of_the_miou(folders):
    comparison = compare(read_runs(folders), "bench")
    assert comparison.metric is MIOU
    assert [each.title for each in comparison.contenders] == ["SDG", "ERM"]
    table = accuracy_table(comparison)
    assert table.title == "mIoU on unseen domains, %"
    sdg, erm = (row.cells[1] for row in table.rows)
    assert (sdg.text, sdg.spread, sdg.mark) == ("40.0", "39.0–41.0", "best")
    assert (erm.text, erm.mark) == ("30.0", "")
    assert "95% interval over images, by a bootstrap: too narrow where they are frames of one video" in table.notes[0]


def test_a_difference_within_the_intervals_of_the_miou_is_chance(tmp_path):
    wide = [dense_run(tmp_path, "erm", 0.30, 0.9, spread=0.2), dense_run(tmp_path, "sdg", 0.40, 0.7, spread=0.2)]
    comparison = compare(read_runs(wide), "bench")
    assert accuracy_table(comparison).rows[1].cells[1].mark == "close"
    assert headline(comparison).holds_up.startswith("No clear winner on dusk: SDG 40.0% mIoU, ERM 30.0% mIoU")


def test_the_headline_says_miou_and_whether_uncertainty_finds_wrong_pixels(folders, tmp_path):
    said = headline(compare(read_runs(folders), "bench"))
    assert said.holds_up == "SDG holds up best on dusk: 40.0% mIoU, 10.0 points above ERM."
    assert "SDG is more uncertain where it is wrong: of a wrong and a right pixel of dusk" in said.knows
    assert "in 80% of cases" in said.knows
    assert said.knows.endswith("Its uncertainty is higher on dusk than on home: 1.00 and 0.50 nats per pixel.")
    blind = headline(compare(read_runs([dense_run(tmp_path / "x", "gud", 0.3, 0.9, 0.4, auroc=0.4)]), "bench"))
    assert blind.holds_up == "GUD has 30.0% mIoU on dusk, against 60.0% mIoU on home, its source."
    assert "is sometimes most certain where it is wrong" in blind.knows
    assert "is not higher on dusk than on home: 0.40 and 0.50" in blind.knows


def test_records_from_before_the_miou_had_an_interval_are_refused(tmp_path):
    folder = dense_run(tmp_path, "erm", 0.3, 0.9)
    path = folder / "results.jsonl"
    path.write_text(path.read_text().replace('"metric": "miou"', '"metric": "miou-of-old"'))
    with pytest.raises(UserError, match="the record of miou on home has no 'value'"):
        refuse_old_records(compare(read_runs([folder]), "bench"))


def test_runs_on_images_with_one_label_still_show_accuracy():
    assert compare([made_run({"home": 0.9, "far": 0.5})], "bench").metric is ACCURACY


def test_the_page_has_a_bar_for_each_class_and_method(folders):
    page = render(read_runs(folders))
    figure = page.partition("IoU of each class")[2]
    address = re.search(r"data:image/svg\+xml;base64,([^\"]+)", figure)
    drawing = base64.b64decode(address[1]).decode()
    for name in (*CLASSES, "ERM", "SDG", "intersection over union"):
        assert f">{name}</text>" in drawing
    # Bars of three classes of dusk and two of home, and the one of the legend; of the second method they are hatched.
    assert drawing.count(f"fill: {COLOURS[0].lower()}") == 3 + 2 + 1


def test_the_page_shows_pictures_and_speaks_of_miou(folders):
    page = render(read_runs(folders))
    images = page.partition("Images, answers and doubts")[2].partition("</section>")[0]
    address = re.search(r"data:image/svg\+xml;base64,([^\"]+)", images)
    drawing = base64.b64decode(address[1]).decode()
    assert drawing.count("<image") == 2 * 2 * 3  # two images; above what each of two methods says, below its doubt
    assert drawing.count(">25% of pixels right</text>") == 2
    assert drawing.count(">1.00 nats per pixel</text>") == 2
    assert "mIoU on unseen domains, %" in page
    assert "Where less is found, more should be flagged." in page
    assert "more are wrong than flagged" not in page
    assert 'class="image-card"' not in page
