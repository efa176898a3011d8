"""The two tables of CIFAR-10-C: means over corruptions, levels and categories, and numbers relative to ERM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from onedomain.cli.reproduce_show import from_records
from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.errors import UserError
from onedomain.reporting.render.markdown import as_markdown
from onedomain.reporting.render.terminal import show
from onedomain.reporting.reproduce.columns import RelativeError
from onedomain.reporting.reproduce.declare import Row
from onedomain.reporting.reproduce.formats import tables
from onedomain.reporting.reproduce.grid import Request
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.runs.job import Ended
from tests.reporting.reproduce.records import records

LITE = "cifar10-c-lite"
QUICK = SCALES["quick"]
SEVERITY, SCALE = TABLES["cifar-severity"].at(QUICK)
CORRUPTIONS, _ = TABLES["cifar-corruptions"].at(QUICK)
ERM, SDG, NO_META = Row("ERM", "erm"), Row("SDG", "sdg"), Row("", "sdg", {"meta": False})


def accuracies(worst, step=0.1, clean=0.9):
    """Of every corruption `worst` at severity 5 (by kind, or of all), `step` more at each severity below."""
    by_kind = worst if isinstance(worst, dict) else dict.fromkeys(KINDS, worst)
    every = {f"{kind}-{level}": value + step * (5 - level) for kind, value in by_kind.items() for level in SEVERITIES}
    return {"cifar10": clean, **every}


def made(*rows, table=CORRUPTIONS, seeds=None, **options):
    return tabulate(table, SCALE, [record for part in rows for record in part], seeds=seeds, command="x", **options)


def run(row, scores, seed=0, table=CORRUPTIONS, **changes):
    return records(table, SCALE, row, seed, scores, **changes)


def cells(result, label):
    [found] = [row for row in result.rows if row.row.label == label]
    return found.cells


def test_levels_are_means_over_the_corruptions():
    by_kind = {kind: 0.2 + 0.01 * place for place, kind in enumerate(KINDS)}
    result = made(run(SDG, accuracies(by_kind, step=0.05)), table=SEVERITY)
    found = cells(result, "SDG")
    assert [found[f"severity-{level}"].mean for level in SEVERITIES] == pytest.approx([49, 44, 39, 34, 29])
    assert found["average"].mean == pytest.approx(39)
    assert [found[f"severity-{level}"].paper for level in SEVERITIES] == [90.5, 86.8, 82.5, 76.4, 65.6]
    assert found["average"].paper == pytest.approx((90.5 + 86.8 + 82.5 + 76.4 + 65.6) / 5)
    assert found["severity-5"].difference == pytest.approx(29 - 65.6)
    assert cells(result, "AugMix")["severity-1"].paper is None


def test_corruptions_categories_and_both_averages_are_those_computed_by_hand():
    category = {"weather": 0.1, "blur": 0.2, "noise": 0.3, "digital": 0.4}
    by_kind = {kind: category[name] for name, kinds in CATEGORIES.items() for kind in kinds}
    found = cells(made(run(SDG, accuracies(by_kind))), "SDG")
    assert [found[name].mean for name in category] == pytest.approx([10, 20, 30, 40])
    assert found["average"].mean == pytest.approx(100 * (3 * 0.1 + 5 * 0.2 + 4 * 0.3 + 7 * 0.4) / 19)
    assert found["categories"].mean == pytest.approx(25)
    assert found["cifar10"].mean == pytest.approx(90)
    assert (found["fog-5"].mean, found["fog-5"].paper) == (pytest.approx(10), 69.36)
    assert found["average"].paper == 65.59
    assert found["weather"].paper == pytest.approx((69.36 + 80.59 + 76.66) / 3, abs=0.005)
    assert found["categories"].paper == pytest.approx((75.5367 + 60.476 + 55.88 + 70.5329) / 4, abs=0.005)


def test_mce_and_rmce_are_relative_to_erms_run_of_the_same_seed():
    erm = {**dict.fromkeys(KINDS, 0.5), "fog": 0.8}
    result = made(
        run(ERM, accuracies(erm)),
        run(SDG, accuracies(0.6, clean=0.85)),
        run(ERM, accuracies(0.2), seed=1),
        run(SDG, accuracies(0.6, clean=0.85), seed=1),
        run(NO_META, accuracies(0.2), seed=1),
    )
    found = cells(result, "SDG")
    # Seed 0: 0.4 / 0.5 of 18 corruptions and 0.4 / 0.2 of fog; seed 1: 0.4 / 0.8.
    assert found["mce"].values == pytest.approx(((18 * 0.8 + 2) / 19, 0.5))
    # Without the clean errors, 0.15 and 0.1: 0.25 / 0.4 and 0.25 / 0.1; 0.25 / 0.7.
    assert found["rmce"].values == pytest.approx(((18 * 0.625 + 2.5) / 19, 0.25 / 0.7))
    assert (found["mce"].paper, found["rmce"].paper) == (0.82, 0.77)
    assert cells(result, "ERM")["mce"].values == pytest.approx((1, 1))
    assert cells(result, "SDG without meta-learning")["mce"].values == pytest.approx((1,))
    assert not any("missing or failed" in note for note in result.notes)


def test_a_missing_run_of_erm_is_told_with_the_command_that_makes_it(capsys):
    result = made(
        run(ERM, accuracies(0.5)),
        run(SDG, accuracies(0.6)),
        run(SDG, accuracies(0.6), seed=1),
        run(NO_META, accuracies(0.6), seed=1),
        seeds=range(2),
        failures=[Ended("erm-1", Path("logs/erm-1.log"), 0.0, "the loss became nan")],
    )
    assert len(cells(result, "SDG")["mce"].values) == 1
    alone = cells(result, "SDG without meta-learning")
    assert (alone["mce"].mean, alone["mce"].gap, alone["rmce"].gap) == (None, "no ERM", "no ERM")
    assert (alone["average"].gap, cells(result, "AugMix")["mce"].gap) == ("", "")
    [told] = [note for note in result.notes if note.startswith("mCE, RmCE:")]
    assert "the run of ERM with seed 1 is missing or failed" in told
    what = "--benchmark cifar10-c-lite --method erm --seed 1 --network wrn-10-1"
    assert told.endswith(f"onedomain train {what} --out runs/erm-1")
    assert "| no ERM | no ERM |" in as_markdown(*tables(result))
    assert not any("missing or failed" in note for note in made(run(SDG, accuracies(0.6)), table=SEVERITY).notes)
    show(*tables(result), width=160)
    printed = capsys.readouterr().out
    for text in ("no ERM", "Failed: erm-1", told):
        assert text in printed


def test_errors_are_relative_to_erm_on_the_same_benchmark():
    rows = tuple(Row(name.upper(), name, benchmark=where) for where in (LITE, "cifar10-c") for name in ("erm", "sdg"))
    table = replace(CORRUPTIONS, rows=rows, columns=(RelativeError("mce", "mCE", ("fog-5",)),))
    accuracy = zip(rows, (0.5, 0.6, None, 0.7), strict=True)
    scored = [run(row, {"fog-5": value}, table=table) for row, value in accuracy if value is not None]
    result = made(*scored, table=table)
    assert [row.cells["mce"].mean for row in result.rows] == [1, pytest.approx(0.8), None, None]
    assert [row.cells["mce"].gap for row in result.rows] == ["", "", "", "no ERM"]
    [told] = [note for note in result.notes if "missing or failed" in note]
    what = "--benchmark cifar10-c --method erm --seed 0 --network wrn-16-4"
    assert told.endswith(f"onedomain train {what} --out runs/cifar10-c-erm-0")


def test_where_erm_loses_nothing_the_ratio_is_not_defined():
    found = cells(made(run(ERM, accuracies(0.9)), run(SDG, accuracies(0.6))), "SDG")
    assert (found["rmce"].mean, found["rmce"].gap) == (None, "not defined")
    assert found["mce"].mean == pytest.approx(4)


def test_corruptions_that_are_not_there_are_left_out_on_both_sides_and_named():
    some = [kind for kind in KINDS if kind not in ("fog", "snow")]
    scores = accuracies(dict.fromkeys(some, 0.5))
    result = made(run(ERM, scores), run(SDG, scores))
    found = cells(result, "SDG")
    assert found["average"].paper == pytest.approx(sum(found[f"{kind}-5"].paper for kind in some) / 17, abs=0.005)
    assert found["weather"].paper == 76.66  # frost alone
    assert (found["mce"].mean, found["mce"].paper) == (pytest.approx(1), None)
    assert "fog, snow: not scored, for want of data." in result.notes
    assert "The averages, the paper's too, are over the 17 others." in result.notes


def test_a_note_of_all_targets_is_told_once():
    regenerated = run(SDG, accuracies(0.5))
    for record in regenerated:
        record["note"] = "regenerated"
    assert [note for note in made(regenerated).notes if "regenerated" in note] == ["All 19 domains: regenerated."]
    every = run(SDG, accuracies(0.5), table=SEVERITY)
    for record in every:
        record["note"] = "regenerated" if record["domain"].startswith(("fog", "snow")) else ""
    [note] = [note for note in made(every, table=SEVERITY).notes if "regenerated" in note]
    assert note == "fog-1, fog-2, fog-3, fog-4, fog-5, snow-1, snow-2 and 3 others: regenerated."


def test_columns_stand_in_blocks_and_the_first_has_steps_and_seeds():
    result = made(run(ERM, accuracies(0.5)), run(SDG, accuracies(0.6)))
    found = tables(result)
    assert [table.corner.removeprefix("method, ") for table in found] == ["all corruptions", *CATEGORIES]
    assert found[0].headings[:4] == ["method, all corruptions", "steps", "seeds", "minutes"]
    assert found[0].headings[6:8] == ["mCE", "RmCE"]
    assert found[1].headings == ["method, weather", "fog (%)", "snow (%)", "frost (%)", "mean of weather (%)"]
    text = as_markdown(*tables(result))
    assert text.splitlines()[0].endswith("on cifar10-c-lite; REDUCED protocol")
    assert text.count("| SDG |") == 5
    assert "| SDG | 60.00 | 60.00 | 60.00 | 60.00 |" in text
    assert [table.corner for table in tables(made(table=SEVERITY))] == ["method"]


def test_records_of_the_lite_benchmark_make_the_quick_table_and_no_other(tmp_path, capsys):
    file = tmp_path / "records.jsonl"
    rows = [*run(ERM, accuracies(0.5)), *run(SDG, accuracies(0.6))]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    from_records(Request(TABLES["cifar-severity"], QUICK), [str(file)], as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["benchmarks"], document["scale"], document["reduced"]) == (["cifar10-c-lite"], "quick", True)
    assert document["rows"][0]["cells"]["severity-5"]["mean"] == pytest.approx(50)
    assert document["command"].startswith("onedomain reproduce cifar-severity --scale quick --from")
    with pytest.raises(UserError, match="no run of the table cifar-severity at the scale full"):
        from_records(Request(TABLES["cifar-severity"], SCALES["full"]), [str(file)], as_json=True)
