from __future__ import annotations

from pathlib import Path

import pytest

from onedomain.errors import UserError
from onedomain.reporting.reproduce.columns import score
from onedomain.reporting.reproduce.declare import Row, Table
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.runs.job import Ended
from tests.reporting.reproduce.records import records

DIGITS, QUICK, FULL = TABLES["digits"], SCALES["quick"], SCALES["full"]
SDG, ERM = Row("SDG", "sdg"), Row("ERM", "erm")
THREE = {"mnist": 0.99, "svhn": 0.30, "mnist-m": 0.60, "usps": 0.75}


def made(*rows, scale=FULL, table=DIGITS, seeds=None, **options):
    return tabulate(table, scale, [record for part in rows for record in part], seeds=seeds, command="x", **options)


def row_of(result, label):
    [found] = [row for row in result.rows if row.row.label == label]
    return found


def test_means_deviations_and_differences_are_those_computed_by_hand():
    other = {"mnist": 0.98, "svhn": 0.36, "mnist-m": 0.66, "usps": 0.81}
    row = row_of(made(records(DIGITS, FULL, SDG, 1, other), records(DIGITS, FULL, SDG, 0, THREE)), "SDG")
    svhn, average = row.cells["svhn"], row.cells["average"]
    assert svhn.values == (30.0, 36.0)  # by seed
    assert svhn.mean == pytest.approx(33.0)
    assert svhn.deviation == pytest.approx(4.242641)  # √((3² + 3²) / 1)
    assert svhn.paper == 42.55
    assert svhn.difference == pytest.approx(-9.55)
    assert average.mean == pytest.approx((55 + 61) / 2)  # (30 + 60 + 75) / 3 and 6 more; the source does not count
    assert average.deviation == pytest.approx(4.242641)
    assert average.paper == pytest.approx(63.01)  # of the same three domains
    assert average.difference == pytest.approx(58 - 63.01)
    assert row.seeds == (0, 1)
    assert row.minutes == pytest.approx(2.0)  # 1.5 and 2.5
    assert row.steps == 10_000


def test_a_missing_domain_is_a_gap_and_is_told_with_what_the_average_is_of():
    result = made(records(DIGITS, FULL, SDG, 0, THREE))
    cell = row_of(result, "SDG").cells["syn"]
    assert (cell.mean, cell.paper, cell.difference) == (None, 48.95, None)
    assert "SYN: not scored, for want of data." in result.notes
    assert "The averages, the paper's too, are over SVHN, MNIST-M, USPS." in result.notes
    complete = made(records(DIGITS, FULL, SDG, 0, {**THREE, "syn": 0.5}))
    assert row_of(complete, "SDG").cells["average"].paper == 59.49  # as printed
    assert not any("not scored" in note for note in complete.notes)


def test_a_domain_that_one_run_lacks_is_in_no_average():
    """Else averages over different domains would stand below each other."""
    result = made(records(DIGITS, FULL, SDG, 0, THREE), records(DIGITS, FULL, ERM, 0, {**THREE, "syn": 0.9}))
    assert row_of(result, "ERM").cells["syn"].mean == pytest.approx(90)
    assert row_of(result, "ERM").cells["average"].mean == pytest.approx(55)
    assert "SYN: not scored by every run, for want of data." in result.notes


def test_one_seed_has_no_deviation_and_no_run_no_number():
    result = made(
        records(DIGITS, FULL, ERM, 0, THREE),
        seeds=range(2),
        failures=[Ended("sdg-0", Path("logs/sdg-0.log"), 0.0, "the loss became nan")],
    )
    assert row_of(result, "ERM").cells["svhn"].deviation is None
    sdg = row_of(result, "SDG")
    assert (sdg.seeds, sdg.minutes, sdg.cells["svhn"].mean) == ((), None, None)
    assert sdg.cells["svhn"].paper == 42.55
    assert result.seeds == (0, 1)


def test_no_run_at_all_still_makes_a_table():
    result = made(seeds=range(1))
    assert row_of(result, "SDG").cells["average"].paper == 59.49
    assert result.versions == {}


def test_records_of_other_settings_seeds_and_benchmarks_are_left_out():
    reduced = records(DIGITS, QUICK, SDG, 0, THREE)
    other = records(DIGITS, FULL, Row("", "sdg", {"beta": 0.0}), 0, THREE)
    elsewhere = records(DIGITS, FULL, SDG, 0, THREE, benchmark="digits-shifted")
    own_images = records(DIGITS, FULL, SDG, 0, THREE, trained_on=None)
    unknown = records(DIGITS, FULL, SDG, 0, THREE, method="no-longer-there")
    assert not any(row.seeds for row in made(reduced, other, elsewhere, own_images, unknown).rows)
    assert row_of(made(reduced, scale=QUICK), "SDG").seeds == (0,)
    assert row_of(made(other, table=TABLES["ablation"]), "SDG without L_relax").seeds == (0,)
    third = records(DIGITS, FULL, SDG, 2, THREE)
    assert row_of(made(third, seeds=range(2)), "SDG").seeds == ()
    assert row_of(made(third), "SDG").seeds == (2,)


def test_settings_that_came_later_count_as_their_defaults():
    before = records(DIGITS, FULL, SDG, 0, THREE)
    for record in before:
        record["settings"] = {name: value for name, value in record["settings"].items() if name != "retrain"}
    assert row_of(made(before), "SDG").seeds == (0,)


def test_runs_of_one_row_that_differ_in_what_was_usual_are_refused():
    other = records(DIGITS, FULL, SDG, 1, THREE)
    for record in other:
        record["settings"] = {**record["settings"], "learning_rate": 0.5}  # the default of another version
    with pytest.raises(UserError, match=r"learning_rate is 0.0001 in one run \(sdg, seed 0\) and 0.5 in another"):
        made(records(DIGITS, FULL, SDG, 0, THREE), other)


def test_records_that_do_not_say_what_is_usual_belong_to_no_row():
    unknown = [{**record, "usually": None} for record in records(DIGITS, FULL, SDG, 0, THREE)]
    assert not any(row.seeds for row in made(unknown).rows)


def test_facts_are_in_their_units():
    table = TABLES["efficiency"]
    cells = row_of(made(records(table, FULL, SDG, 0, THREE), table=table), "SDG").cells
    assert cells["training_parameters"].mean == pytest.approx(7.024958)
    assert cells["training_parameters"].paper == 7.02
    assert cells["minutes"].mean == pytest.approx(1.5)
    assert cells["memory"].mean == 900
    assert (cells["memory"].paper, cells["memory"].difference) == (None, None)
    before = records(table, FULL, SDG, 0, THREE, peak_memory_mb=None)  # as records were before it was measured
    assert row_of(made(before, table=table), "SDG").cells["memory"].mean is None


def test_a_reduced_protocol_and_notes_of_data_are_told():
    cut = records(DIGITS, QUICK, SDG, 0, THREE)
    for record in cut:
        if record["domain"] == "svhn":
            record["note"] = "100 of 26,032 images"
    result = made(cut, scale=QUICK)
    assert result.notes[0].startswith("Reduced protocol: a tenth of each method's steps")
    assert "SVHN: 100 of 26,032 images." in result.notes
    assert not any("Reduced" in note for note in made(records(DIGITS, FULL, SDG, 0, THREE)).notes)


def test_runs_with_different_data_are_not_put_into_one_table():
    with pytest.raises(UserError, match="not trained with the same images"):
        made(records(DIGITS, FULL, SDG, 0, THREE), records(DIGITS, FULL, ERM, 0, THREE, source="s1"))
    other = records(DIGITS, FULL, ERM, 0, THREE)
    other[2]["data"] = other[3]["data"] = "another svhn"
    with pytest.raises(UserError, match="not scored on svhn with the same images"):
        made(records(DIGITS, FULL, SDG, 0, THREE), other)


def test_one_run_twice_and_records_of_something_else_are_refused():
    with pytest.raises(UserError, match="sdg, seed 0, is there twice on mnist"):
        made(records(DIGITS, FULL, SDG, 0, THREE), records(DIGITS, FULL, SDG, 0, THREE))
    [first, *_] = records(DIGITS, FULL, SDG, 0, THREE)
    del first["settings"]
    with pytest.raises(UserError, match="one has no 'settings'"):
        made([first])


def test_versions_of_all_runs_are_told():
    result = made(records(DIGITS, FULL, SDG, 0, THREE), records(DIGITS, FULL, SDG, 1, THREE, onedomain="0.2.0"))
    assert result.versions == {"onedomain": "0.1.0, 0.2.0", "python": "3.11.2", "torch": "2.9.1"}


def test_a_table_reports_its_own_metric():
    table = Table("toy", "A toy", "digits-lite", (ERM,), (score("uci", "UCI"),), metric="nll")
    assert made(records(table, FULL, ERM, 0, {"uci": 0.5}), table=table).rows[0].cells["uci"].mean == 100.0


SEGMENTATION = TABLES["segmentation"]
TEN = {column.name: 0.1 for column in SEGMENTATION.columns if column.over == (column.name,)}


def test_rows_of_several_benchmarks_keep_to_their_own_runs_and_paper():
    of = {(row.benchmark, row.method): row for row in SEGMENTATION.rows}
    dawn, fog = of["synthia-dawn", "erm"], of["synthia-fog", "erm"]
    result = made(
        records(SEGMENTATION, FULL, dawn, 0, {"highway-dawn": 0.9, **TEN}),
        records(SEGMENTATION, FULL, fog, 0, {"highway-fog": 0.9, **TEN, "new-york-fog": 0.3}, source="s1"),
        table=SEGMENTATION,
    )
    cells = {(row.row.benchmark, row.row.method): row.cells for row in result.rows}
    assert cells["synthia-dawn", "erm"]["new-york-fog"].mean == pytest.approx(10)  # of the metric miou
    assert cells["synthia-fog", "erm"]["new-york-fog"].mean == pytest.approx(30)
    assert cells["synthia-fog", "erm"]["average"].mean == pytest.approx(12)
    assert cells["synthia-dawn", "erm"]["new-york-fog"].paper == 2.73
    assert cells["synthia-fog", "erm"]["average"].paper == 27.16
    assert cells["synthia-spring", "erm"]["average"].mean is None
    assert cells["synthia-spring", "sdg"]["average"].paper == 37.47
    assert [row.row.section for row in result.rows][::4] == ["Highway/Dawn", "Highway/Fog", "Highway/Spring"]


def test_a_condition_that_one_source_lacks_is_in_no_average():
    of = {(row.benchmark, row.method): row for row in SEGMENTATION.rows}
    nine = {name: value for name, value in TEN.items() if name != "old-town-winter"}
    result = made(
        records(SEGMENTATION, FULL, of["synthia-dawn", "erm"], 0, {**TEN, "old-town-winter": 0.9}),
        records(SEGMENTATION, FULL, of["synthia-fog", "erm"], 0, nine),
        table=SEGMENTATION,
    )
    assert result.rows[0].cells["average"].mean == pytest.approx(10)
    assert "OT winter: not scored by every run, for want of data." in result.notes


def test_runs_of_one_benchmark_of_several_must_share_their_images():
    of = {(row.benchmark, row.method): row for row in SEGMENTATION.rows}
    with pytest.raises(UserError, match="not trained with the same images"):
        made(
            records(SEGMENTATION, FULL, of["synthia-dawn", "erm"], 0, TEN),
            records(SEGMENTATION, FULL, of["synthia-dawn", "sdg"], 0, TEN, source="s1"),
            table=SEGMENTATION,
        )
