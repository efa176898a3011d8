from __future__ import annotations

from dataclasses import replace

import pytest

from onedomain.errors import UserError
from onedomain.reporting.comparison import compare, refuse_old_records
from onedomain.reporting.contenders import is_baseline
from onedomain.reporting.names import method_title
from onedomain.reporting.page.headline import headline
from onedomain.reporting.page.page import remarks
from onedomain.reporting.page.tables import accuracy_table
from tests.reporting.page.made import adapted, made_rows, made_run


def cells(table, title):
    """The cells of a row, by column."""
    row = next(row for row in table.rows if row.title == title)
    return dict(zip((column.name for column in table.columns), row.cells, strict=True))


def test_seeds_are_averaged_and_methods_ranked_by_the_average():
    runs = [
        made_run({"home": 0.9, "near": 0.60, "far": 0.20}, "erm", seed=0),
        made_run({"home": 0.9, "near": 0.70, "far": 0.30}, "sdg", seed=1),
        made_run({"home": 0.8, "near": 0.74, "far": 0.30}, "sdg", seed=0),
    ]
    comparison = compare(runs, "bench")
    assert [each.title for each in comparison.contenders] == ["SDG", "ERM"]
    assert comparison.contenders[0].seeds == ["0", "1"]
    table = accuracy_table(comparison)
    assert [column.name for column in table.columns] == ["average", "near", "far", "home"]
    sdg, erm = cells(table, "SDG"), cells(table, "ERM")
    assert (sdg["average"].text, sdg["average"].spread) == ("51.0", "± 1.4")
    assert (sdg["near"].text, sdg["near"].spread) == ("72.0", "± 2.8")
    assert (sdg["far"].text, sdg["far"].spread) == ("30.0", "± 0.0")
    assert (erm["near"].text, erm["near"].spread) == ("60.0", "56.9–63.0")  # Wilson, 1,000 images
    assert [cell.mark for cell in sdg.values()] == ["best", "best", "best", "close"]  # one seed may have been unlucky
    assert erm["home"].mark == "best"
    assert erm["far"].mark == ""
    assert "1 to 2 seeds" in table.notes[0]


def test_every_best_is_marked_and_what_chance_explains():
    runs = [made_run({"a": 0.50, "b": 0.5}, "erm"), made_run({"a": 0.51, "b": 0.7}, "sdg")]
    table = accuracy_table(compare([*runs, made_run({"a": 0.51, "b": 0.6}, "gud")], "bench"))
    assert [cells(table, title)["a"].mark for title in ("ERM", "SDG", "GUD")] == ["close", "best", "best"]
    assert [cells(table, title)["b"].mark for title in ("ERM", "SDG", "GUD")] == ["", "best", ""]
    alone = accuracy_table(compare(runs[:1], "bench"))
    assert cells(alone, "ERM")["a"].mark == ""


def test_only_domains_that_all_have_are_averaged():
    some = made_run({"a": 0.5}, "sdg")
    every = made_run({"a": 0.4, "b": 0.99}, "erm")
    comparison = compare([every, some], "bench")
    assert comparison.compared == ["a"]
    assert [each.title for each in comparison.contenders] == ["SDG", "ERM"]
    table = accuracy_table(comparison)
    assert cells(table, "SDG")["b"].value is None
    assert cells(table, "ERM")["average"].text == "40.0"
    assert "b is left out of the average: not every run was scored on it." in remarks(comparison)


def test_other_images_of_the_same_name_do_not_compare():
    other = made_run({"a": 0.5, "b": 0.5}, "sdg")
    rows = [{**row, "data": "another"} if row["domain"] == "b" else row for row in other.results]
    comparison = compare([made_run({"a": 0.4, "b": 0.4}, "erm"), replace(other, results=rows)], "bench")
    assert comparison.compared == ["a"]
    table = accuracy_table(comparison)
    assert "different images" in table.columns[2].note
    assert {row.title: [cell.mark for cell in row.cells] for row in table.rows} == {
        "SDG": ["best", "best", ""],
        "ERM": ["", "", ""],
    }
    assert "different images" in remarks(comparison)[0]


def test_the_papers_values_stand_beside_the_methods_and_ablations_it_reports():
    rows = made_rows({"mnist": 0.98, "svhn": 0.3, "mnist-m": 0.6, "usps": 0.7}, "digits", seen=["mnist"])
    runs = [
        made_run({}, method, benchmark="digits", rows=rows, folder=f"{method}-{settings}", **settings)
        for method, settings in (("sdg", {}), ("sdg", {"beta": 0.0}), ("sdg", {"steps": 4000}), ("augmix", {}))
    ]
    table = accuracy_table(compare(runs, "digits"))
    assert cells(table, "SDG")["svhn"].paper == "42.55"
    assert cells(table, "SDG, beta=0")["svhn"].paper == "37.33"
    assert cells(table, "SDG, steps=4000")["svhn"].paper == "42.55"
    assert cells(table, "SDG")["average"].paper == "63.01"  # of the three that were scored
    assert cells(table, "SDG")["mnist"].paper == ""
    assert cells(table, "AugMix")["svhn"].paper == ""
    reduced = [row.note for row in table.rows if row.badge]
    assert reduced == ["4,000 of 10,000 steps · seed\u00a00"]
    said = remarks(compare(runs, "digits"))
    assert "Reduced protocol: syn of digits was not scored." in said
    assert "Reduced protocol: SDG, steps=4000 was trained with steps 4,000 of 10,000." in said


def test_the_quick_protocol_is_the_same_method_reduced():
    rows = made_rows({"svhn": 0.3}, "digits")
    quick = {"steps": 1000, "domain_size": 1000}
    comparison = compare([made_run({}, "sdg", benchmark="digits", rows=rows, **quick)], "digits")
    assert cells(accuracy_table(comparison), "SDG")["svhn"].paper == "42.55"
    assert accuracy_table(comparison).rows[0].badge
    line = "Reduced protocol: SDG was trained with steps 1,000 of 10,000, domain size 1,000 of 5,000."
    assert line in remarks(comparison)
    larger = compare([made_run({}, "sdg", benchmark="digits", rows=rows, domain_size=9000)], "digits")
    assert cells(accuracy_table(larger), "SDG")["svhn"].paper == ""  # that is a change, not a reduction
    longer = compare([made_run({}, "sdg", benchmark="digits", rows=rows, steps=20_000)], "digits")
    assert cells(accuracy_table(longer), "SDG")["svhn"].paper == "42.55"
    assert not accuracy_table(longer).rows[0].badge


def test_what_an_adapted_run_fell_short_of_is_its_parents_training():
    rows = made_rows({"mnist": 0.7}, "few-shot-usps-mnist")
    parent = made_run({}, "sdg", benchmark="few-shot-usps-mnist", rows=rows, steps=3000)
    runs = [parent, adapted(parent, rows, settings={"steps": 438})]
    notes = [row.note for row in accuracy_table(compare(runs, "few-shot-usps-mnist")).rows]
    assert notes == ["3,000 of 10,000 steps · seed\u00a00", "438 steps after 3,000 of 10,000 · draw\u00a00"]


def test_a_protocol_is_reduced_only_where_there_is_one():
    table = accuracy_table(compare([made_run({"a": 0.5}, steps=5)], "bench"))  # a benchmark that is not ours
    assert not table.rows[0].badge


def test_the_paper_says_nothing_of_runs_trained_elsewhere():
    run = made_run({"svhn": 0.3}, "sdg", rows=made_rows({"svhn": 0.3}, "digits"), benchmark="digits-lite")
    comparison = compare([run], "digits")
    assert cells(accuracy_table(comparison), "SDG")["svhn"].paper == ""
    assert "SDG was trained on digits-lite, not on digits." in remarks(comparison)


def test_runs_of_a_method_are_told_apart_by_what_differs():
    a = {"a": 0.5}
    runs = [made_run(a, "sdg"), made_run(a, "sdg", beta=0.0, folder="b"), made_run(a, "sdg", alpha=0.5, folder="c")]
    runs.append(made_run(a, "sdg", log_every=7, seed=1))
    titles = sorted(each.title for each in compare(runs, "bench").contenders)
    assert titles == ["SDG", "SDG, alpha=0.5", "SDG, beta=0"]
    elsewhere = made_run(a, "sdg", rows=made_rows(a), benchmark="digits", folder="d", source="another")
    titles = sorted(each.title for each in compare([runs[0], elsewhere], "bench").contenders)
    assert titles == ["SDG, trained on bench", "SDG, trained on digits"]
    own = made_run(a, "sdg", rows=made_rows(a), own="MyNet", folder="e")
    titles = sorted(each.title for each in compare([runs[0], own], "bench").contenders)
    assert titles == ["SDG, network MyNet", "SDG, network lenet"]
    grown = made_run(a, "sdg", rows=made_rows(a), source="grown", folder="runs/grown")
    titles = sorted(each.title for each in compare([runs[0], grown], "bench").contenders)
    assert titles == ["SDG, trained on bench (grown)", "SDG, trained on bench (sdg-0)"]


def test_benchmarks_with_one_source_train_the_same():
    rows = made_rows({"svhn": 0.3}, "digits")
    runs = [made_run({}, "sdg", seed, name, rows=rows) for seed, name in enumerate(("digits", "digits-shifted"))]
    comparison = compare(runs, "digits")
    assert [each.title for each in comparison.contenders] == ["SDG"]
    assert cells(accuracy_table(comparison), "SDG")["svhn"].paper == "42.55"
    assert not any("was trained on" in remark for remark in remarks(comparison))


def test_one_run_is_not_two_seeds():
    with pytest.raises(UserError, match="copy: is the same as runs/sdg-0: SDG, seed 0, same settings; .*each run once"):
        compare([made_run({"a": 0.5}, "sdg"), made_run({"a": 0.5}, "sdg", folder="copy")], "bench")


def few_shot_runs():
    """A parent on digits, and what became of it on SVHN in two draws."""
    rows = made_rows({"mnist": 0.98, "svhn": 0.3}, "digits", seen=["mnist"])
    parent = made_run({}, "erm", benchmark="digits", rows=rows)
    scored = [made_rows({"svhn": value, "mnist": 0.9}, "digits", seen=["svhn", "mnist"]) for value in (0.5, 0.6)]
    return parent, [adapted(parent, rows, draw=draw) for draw, rows in enumerate(scored)]


def test_an_adapted_run_stands_beside_its_parent_and_is_not_ranked_with_it():
    parent, draws = few_shot_runs()
    comparison = compare([*draws, parent], "digits")
    assert [each.title for each in comparison.contenders] == ["ERM", "ERM, 7 shots of svhn"]
    plain, few_shot = comparison.contenders
    assert (is_baseline(plain), is_baseline(few_shot)) == (True, False)
    assert few_shot.seeds == ["0", "1"]
    table = accuracy_table(comparison)
    assert [(column.name, column.role) for column in table.columns][1:] == [("svhn", ""), ("mnist", "home")]
    assert cells(table, "ERM")["svhn"].paper == "27.83"
    beside = cells(table, "ERM, 7 shots of svhn")
    assert (beside["svhn"].text, beside["svhn"].spread, beside["svhn"].paper) == ("55.0", "± 7.1", "")
    assert (beside["svhn"].mark, beside["average"].mark, beside["mnist"].mark) == ("", "", "")
    assert cells(table, "ERM")["mnist"].mark == "best"  # what was forgotten compares
    assert table.rows[1].note == "438 steps · 2\u00a0draws"
    assert "± standard deviation over draws" in table.notes[0]
    assert headline(comparison).holds_up == "ERM has 30.0% on svhn, against 98.0% on mnist, its source."
    said = "ERM, 7 shots of svhn has learned images of svhn: it is not ranked with what has not."
    assert said in remarks(comparison)


def test_adapted_runs_alone_are_not_taken_for_generalizing():
    _, draws = few_shot_runs()
    comparison = compare(draws, "digits")
    assert [column.role for column in comparison.columns] == ["adapted to", "the source, held out"]
    assert headline(comparison).holds_up == "ERM, 7 shots of svhn: 55.0% on svhn after adapting to it."
    assert accuracy_table(comparison).columns[1].note == "adapted to · 1,000"


def test_one_draw_is_not_two():
    parent, [first, second] = few_shot_runs()
    with pytest.raises(UserError, match="is the same as .*draw-0: ERM, 7 shots of svhn, seed 0, draw 0, same settings"):
        compare([parent, first, replace(first, folder=second.folder)], "digits")


def test_the_paper_says_nothing_of_another_network():
    run = made_run({}, "sdg", benchmark="digits", rows=made_rows({"svhn": 0.3}, "digits"))
    network = run.manifest.network.model_copy(update={"name": "wrn-10-1"})
    other = replace(run, manifest=run.manifest.model_copy(update={"network": network}))
    assert cells(accuracy_table(compare([run], "digits")), "SDG")["svhn"].paper == "42.55"
    assert cells(accuracy_table(compare([other], "digits")), "SDG")["svhn"].paper == ""


def test_records_of_an_earlier_form_say_how_to_renew_them():
    rows = [{key: value for key, value in row.items() if key != "training_parameters"} for row in made_rows({"a": 0.5})]
    with pytest.raises(UserError, match=r"no 'training_parameters'; .*onedomain evaluate runs/erm-0 --benchmark bench"):
        refuse_old_records(compare([made_run({}, rows=rows)], "bench"))


def test_methods_are_spelled_as_in_the_paper():
    names = {"erm": "ERM", "d-sne": "d-SNE", "uncertain-sdg": "Uncertain SDG", "me-ada": "ME-ADA", "MyOwn": "MyOwn"}
    assert {name: method_title(name) for name in names} == names
