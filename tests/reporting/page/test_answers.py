from __future__ import annotations

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from onedomain.errors import UserError
from onedomain.reporting.comparison import compare
from onedomain.reporting.page.answers import as_data_address, choose, galleries, warnings
from onedomain.reporting.page.tables import DOUBTS, uncertainty_by_domain, uncertainty_table
from onedomain.runs.outcomes import save_outcome
from onedomain.runs.records import read_runs
from tests.reporting.page.made import made_outcome, made_rows, made_run, write_run

LABELS = [0, 1, 2, 0]


def read(tmp_path, **outcomes):
    """Runs on disk, by method, with their answers on one domain."""
    folders = []
    for method, outcome in outcomes.items():
        right = float(np.nanmean(outcome.right))
        rows = made_rows({"far": right}, flagged={"far": 0.5}, count=outcome.count, data=outcome.fingerprint)
        folders.append(write_run(tmp_path / method, made_run({}, method, rows=rows), [outcome]))
    return compare(read_runs(folders), "bench")


def test_each_card_shows_what_is_there_and_what_every_method_says(tmp_path):
    comparison = read(
        tmp_path,
        erm=made_outcome("far", [0, 2, 2, 1], LABELS, [0.1, 0.9, 0.2, 0.3]),
        sdg=made_outcome("far", [0, 1, 2, 1], LABELS, [0.1, 0.1, 0.1, 0.9]),
    )
    [gallery] = galleries(comparison)
    assert gallery["domain"] == "far"
    card = gallery["cards"][1]
    assert card["truth"] == "one"
    answers = {answer["title"]: answer for answer in card["answers"]}
    told = {"entropy": "0.67", "doubt": round(100 * 2 / 3 / np.log(3)), "sure": "67%"}
    assert answers["ERM"] == {"title": "ERM", "said": "two", "right": False, "flagged": True, **told}
    assert answers["SDG"] == {"title": "SDG", "said": "one", "right": True, "flagged": False, **told}
    assert [card["kinds"] for card in gallery["cards"]] == ["", "wrong", "", "silent wrong"]
    shown = Image.open(io.BytesIO(base64.b64decode(card["source"].removeprefix("data:image/png;base64,"))))
    assert shown.size == (8, 8)
    assert shown.getpixel((0, 0)) == (20, 20, 20)


def test_images_are_chosen_until_every_method_is_shown_right_and_wrong():
    always, sometimes = np.ones(100), np.ones(100)
    sometimes[[50, 60, 70, 80]] = 0
    assert choose([always, sometimes]) == [0, 1, 2, 50, 60, 70]
    assert choose([always]) == [0, 1, 2]
    assert choose([np.arange(100) % 2, 1 - np.arange(100) % 2]) == [0, 1, 2, 3, 4, 5]
    assert len(choose([np.random.default_rng(seed).integers(0, 2, 100) for seed in range(30)])) <= 12


def test_warnings_are_counted_over_images_and_seeds_and_averaged_over_domains(tmp_path):
    folders = []
    for seed, score in enumerate(([0.9, 0.1, 0.1, 0.9], [0.1, 0.1, 0.1, 0.1])):
        outcomes = [
            made_outcome("far", [0, 1, 0, 1], LABELS, score),  # the last two are wrong
            made_outcome("near", [0, 1, 2, 1], LABELS, [0.9, 0.9, 0.9, 0.9]),
        ]
        rows = made_rows({"far": 0.5, "near": 0.75}, flagged={"far": 0.2, "near": 1.0}, count=4)
        folders.append(write_run(tmp_path / str(seed), made_run({}, seed=seed, rows=rows), outcomes))
    comparison = compare(read_runs(folders), "bench")
    [erm] = comparison.contenders
    far = warnings(erm, "bench", ["far"])
    assert (far.of_wrong, far.of_right) == (0.25, 0.25)
    both = warnings(erm, "bench", ["far", "near"])
    assert (both.of_wrong, both.of_right) == (0.625, 0.625)
    assert warnings(erm, "bench", ["far", "unknown"]) is None


def test_without_answers_there_are_no_images_and_no_counts(tmp_path):
    rows = made_rows({"far": 0.5}, flagged={"far": 0.5})
    folder = write_run(tmp_path / "a", made_run({}, rows=rows))
    comparison = compare(read_runs([folder]), "bench")
    assert galleries(comparison) == []
    [row] = uncertainty_table(comparison, "x").rows
    texts = dict(zip((doubt.name for doubt in DOUBTS), (cell.text for cell in row.cells), strict=True))
    assert texts["wrong flagged"] == "–"
    assert texts["flagged"] == "50.0"


def test_answers_on_other_images_are_not_shown_beside_the_best(tmp_path):
    comparison = read(
        tmp_path,
        erm=made_outcome("far", [0, 1, 2, 1], LABELS, [0] * 4),
        sdg=made_outcome("far", [0, 0, 2, 1], LABELS, [0] * 4, fingerprint="others"),
    )
    [gallery] = galleries(comparison)
    assert [answer["title"] for answer in gallery["cards"][0]["answers"]] == ["ERM"]


def test_where_pixels_have_labels_their_share_is_told(tmp_path):
    shares = np.array([0.25, np.nan, 1.0, 0.75], np.float32)  # of the second image no pixel counts
    outcome = made_outcome("far", LABELS, LABELS, [0, 0, 1, 1])
    outcome = replace(outcome, labels=None, predicted=None, shares_right=shares)
    comparison = read(tmp_path, erm=outcome)
    [gallery] = galleries(comparison)
    assert [card["answers"][0]["said"] for card in gallery["cards"]] == [
        f"{share}% of pixels" for share in (25, 100, 75)
    ]
    assert gallery["cards"][0]["truth"] is None
    assert warnings(comparison.contenders[0], "bench", ["far"]) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"predicted": np.array([0, 1, 2, 7])},
        {"confidence": np.zeros(3, np.float32)},
        {"sample": np.array([0, 1, 2, 9])},
        {"sample_images": np.zeros((4, 8, 8), np.uint8)},
    ],
)
def test_answers_that_do_not_fit_together_are_refused(tmp_path, changes):
    comparison = read(tmp_path, erm=made_outcome("far", LABELS, LABELS, [0] * 4))
    save_outcome(replace(made_outcome("far", LABELS, LABELS, [0] * 4), **changes), tmp_path / "erm", "bench")
    with pytest.raises(UserError, match="far.safetensors: .*; allowed: a file written by onedomain"):
        galleries(comparison)


def test_the_best_doubts_are_marked():
    runs = [made_run({"a": 0.2}, "erm"), made_run({"a": 0.6}, "sdg")]  # the metrics made grow with the accuracy
    table = uncertainty_table(compare(runs, "bench"), "x")
    names = [column.name for column in table.columns]
    marked = {row.title: [name for name, cell in zip(names, row.cells, strict=True) if cell.mark] for row in table.rows}
    assert marked == {"SDG": ["error AUROC"], "ERM": ["AURC", "ECE", "NLL", "Brier"]}
    by_domain = uncertainty_by_domain(compare(runs, "bench"), "x")
    shown = [[row.title, *(cell.text for cell in row.cells[:2])] for row in by_domain.rows]
    assert shown == [["SDG", "a", "60.0"], ["ERM", "a", "20.0"]]


def test_grey_images_are_grey_and_alpha_is_dropped():
    for channels, mode in ((1, "L"), (2, "L"), (3, "RGB"), (4, "RGB")):
        address = as_data_address(np.zeros((4, 5, channels), np.uint8))
        image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
        assert (image.mode, image.size) == (mode, (5, 4))
