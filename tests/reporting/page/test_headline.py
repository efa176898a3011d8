from __future__ import annotations

import pytest

from onedomain.reporting.comparison import compare
from onedomain.reporting.page.headline import headline, seeds_of
from onedomain.runs.records import RunRecords
from tests.reporting.page.made import adapted, made_manifest, made_outcome, made_rows, made_run, write_run


def said(*runs):
    return headline(compare(runs, "bench"))


def runs_of(method, *averages, spread=0.1):
    """A run a seed, with these averages over two unseen domains."""
    return [
        made_run({"home": 0.9, "near": value + spread, "far": value - spread}, method, seed)
        for seed, value in enumerate(averages)
    ]


def test_the_best_method_is_compared_with_plain_training():
    lines = said(*runs_of("erm", 0.40), *runs_of("sdg", 0.48), *runs_of("gud", 0.43))
    assert lines.holds_up == "SDG holds up best on 2 unseen domains: 48.0% on average, 8.0 points above ERM."


def test_others_too_close_to_the_best_are_named():
    lines = said(*runs_of("erm", 0.40), *runs_of("sdg", 0.48), *runs_of("gud", 0.475))
    assert lines.holds_up.endswith("8.0 points above ERM; GUD is too close to tell apart.")
    lines = said(*runs_of("erm", 0.4), *runs_of("sdg", 0.48), *runs_of("gud", 0.475), *runs_of("ccsa", 0.47))
    assert lines.holds_up.endswith("; GUD and CCSA are too close to tell apart.")


def test_a_difference_that_chance_explains_is_no_win():
    lines = said(*runs_of("erm", 0.475), *runs_of("sdg", 0.481))
    assert lines.holds_up == (
        "No clear winner on 2 unseen domains: SDG 48.1%, ERM 47.5% on average, a difference within chance."
    )


def test_plain_training_may_win():
    assert said(*runs_of("erm", 0.5), *runs_of("sdg", 0.4), *runs_of("gud", 0.3)).holds_up == (
        "ERM, plain training, holds up best on 2 unseen domains: 50.0% on average, 10.0 points above SDG."
    )
    assert said(*runs_of("erm", 0.5), *runs_of("sdg", 0.495)).holds_up == (
        "Nothing beats plain training on 2 unseen domains: ERM 50.0%, SDG 49.5% on average, a difference within chance."
    )


def test_without_plain_training_the_next_best_is_the_measure():
    lines = said(*runs_of("gud", 0.40), *runs_of("sdg", 0.48))
    assert lines.holds_up.endswith("48.0% on average, 8.0 points above GUD.")


def test_plain_training_for_fewer_steps_is_still_the_baseline():
    shorter = made_run({"near": 0.5, "far": 0.3}, "erm", steps=50)
    assert "above ERM" in said(shorter, *runs_of("sdg", 0.6), *runs_of("gud", 0.5)).holds_up


def test_an_ablation_of_plain_training_is_not_the_baseline():
    changed = made_run({"near": 0.5, "far": 0.3}, "erm", learning_rate=0.1, folder="b")
    lines = said(changed, *runs_of("sdg", 0.6), *runs_of("gud", 0.5))
    assert "above GUD" in lines.holds_up


def test_a_single_method_is_compared_with_its_source():
    assert said(*runs_of("sdg", 0.48)).holds_up == (
        "SDG has 48.0% on average on 2 unseen domains, against 90.0% on home, its source."
    )
    assert said(made_run({"night": 0.5}, "sdg")).holds_up == "SDG has 50.0% on night."


def test_seeds_that_scatter_make_the_same_difference_unclear():
    steady = said(*runs_of("erm", 0.40, 0.41, 0.40), *runs_of("sdg", 0.48, 0.49, 0.48))
    assert steady.holds_up.startswith("SDG holds up best")
    scattered = said(*runs_of("erm", 0.30, 0.50, 0.41), *runs_of("sdg", 0.38, 0.60, 0.47))
    assert scattered.holds_up.startswith("No clear winner")


def test_the_number_of_seeds_is_told():
    assert seeds_of(compare(runs_of("erm", 0.4), "bench").contenders) == "one seed"
    assert "may change the order" in seeds_of(compare([*runs_of("erm", 0.4), *runs_of("sdg", 0.4)], "bench").contenders)
    three = [*runs_of("erm", 0.4, 0.4, 0.4), *runs_of("sdg", 0.4, 0.4, 0.4)]
    assert seeds_of(compare(three, "bench").contenders) == "3 seeds each"
    assert seeds_of(compare(three[:-2], "bench").contenders) == "1 to 3 seeds"


def test_nothing_in_common_is_nothing_to_compare():
    lines = said(made_run({"a": 0.5}, "erm"), made_run({"b": 0.5}, "sdg"))
    assert lines.holds_up == "Nothing to compare: the runs share no unseen domain."
    assert said(made_run({"home": 0.5}, "erm")).holds_up.endswith("were scored on no unseen domain.")


def test_an_adapted_run_among_others_does_not_keep_them_from_being_compared():
    """It is scored on the images that it has not learned, and not on every domain."""
    rows = made_rows({"near": 0.9}, data="the others", seen=["near"])
    plain = [*runs_of("erm", 0.40), *runs_of("sdg", 0.48)]
    learned = adapted(plain[0], rows, target="near", benchmark="bench")
    assert said(*plain, learned) == said(*plain)


ACCURACIES = {"home": 0.95, "near": 0.7, "far": 0.2}


@pytest.mark.parametrize(
    ("flagged", "line"),
    [
        (
            {"home": 0.05, "near": 0.4, "far": 0.9},
            "ERM warns where it fails: it flags 40 to 90% of each unseen domain as out of domain "
            "(5% of new home images).",
        ),
        (
            {"home": 0.05, "near": 0.4, "far": 0.3},
            "ERM sometimes fails without a warning: of far it gets 80% wrong and flags 30% as out of domain "
            "(5% of new home images).",
        ),
        (
            {"home": 0.05, "near": 0.1, "far": 0.75},
            "ERM fails without a warning: of near it gets 30% wrong and flags 10% as out of domain "
            "(5% of new home images).",
        ),
        (None, "Whether ERM knows when it fails was not measured: a run of it has no calibration."),
    ],
)
def test_it_says_whether_failures_come_with_a_warning(flagged, line):
    assert said(made_run(ACCURACIES, flagged=flagged)).knows == line


def test_flags_on_right_and_wrong_answers_alike_are_no_warning_of_mistakes(tmp_path):
    outcome = made_outcome("far", predicted=[0, 1, 2, 0], labels=[0, 1, 0, 1], score=[0.9, 0.9, 0.9, 0.9])
    rows = made_rows({"far": 0.5}, flagged={"far": 1.0}, count=4)
    folder = write_run(tmp_path / "a", made_run({}, rows=rows), [outcome], threshold=0.5)
    line = said(RunRecords(folder, made_manifest(), rows, [], True)).knows
    assert line == (
        "ERM warns of unseen domains, hardly of its own mistakes: it flags 100% of far as out of domain. "
        "It flags 100% of its wrong answers and 100% of its right ones."
    )


def test_flagged_answers_are_counted_where_they_were_kept(tmp_path):
    outcome = made_outcome("far", predicted=[0, 1, 2, 0], labels=[0, 1, 0, 1], score=[0.1, 0.9, 0.9, 0.9])
    rows = made_rows({"far": 0.5}, flagged={"far": 0.75}, count=4)
    folder = write_run(tmp_path / "a", made_run({}, rows=rows), [outcome], threshold=0.5)
    line = said(RunRecords(folder, made_manifest(), rows, [], True)).knows
    assert line.endswith("It flags 100% of its wrong answers and 50% of its right ones.")
