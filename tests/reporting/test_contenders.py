from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onedomain.reporting.comparison import compare
from onedomain.reporting.contenders import contenders_of
from onedomain.runs.identity import changed_settings
from onedomain.runs.records import read_run
from tests.reporting.figures.made import make_run
from tests.reporting.page.made import adapted, made_run


def changed(run):
    return changed_settings(run.manifest.settings, run.manifest.usually)


def labels(tmp_path, *runs):
    read = []
    for number, (method, seed, settings) in enumerate(runs):
        read.append(read_run(make_run(tmp_path / f"run{number}", method, seed, settings)))
    return [(group.title, len(group.runs)) for group in contenders_of(read, "bench")]


def test_seeds_are_together_and_methods_apart(tmp_path):
    assert labels(tmp_path, ("erm", 0, {}), ("sdg", 0, {}), ("erm", 1, {})) == [("ERM", 2), ("SDG", 1)]


def test_a_group_is_named_by_what_is_unusual_in_it(tmp_path):
    found = labels(tmp_path, ("sdg", 0, {}), ("sdg", 0, {"beta": 0.0}), ("sdg", 0, {"domains": 1, "log_every": 7}))
    assert found == [("SDG", 1), ("SDG, beta=0", 1), ("SDG, domains=1", 1)]


def test_a_change_that_all_have_tells_nothing(tmp_path):
    found = labels(tmp_path, ("sdg", 0, {"steps": 9}), ("sdg", 0, {"steps": 9, "meta": False}))
    assert found == [("SDG", 1), ("SDG, meta=false", 1)]


def test_many_differences_are_named_by_the_folder(tmp_path):
    three = {"beta": 0.0, "alpha": 0.0, "steps": 3}
    found = labels(tmp_path, ("sdg", 0, {}), ("sdg", 0, three), ("sdg", 0, {**three, "domains": 1}))
    assert found == [("SDG", 1), ("SDG, steps=3, alpha=0, beta=0", 1), ("SDG (run2)", 1)]


def test_another_network_is_not_another_seed():
    run = made_run({"a": 0.5}, "sdg", seed=0)
    network = run.manifest.network.model_copy(update={"weights": "w.pth sha256:0123"})
    other = replace(run, manifest=run.manifest.model_copy(update={"network": network, "seed": 1}), folder=Path("other"))
    found = [group.title for group in contenders_of([run, other], "bench")]
    assert found == ["SDG, network lenet", "SDG, network lenet from w.pth"]


def test_draws_are_together_and_apart_from_their_parent():
    plain = made_run({"a": 0.5}, "sdg")
    runs = [plain, adapted(plain), adapted(plain, draw=1), adapted(plain, shots=10), adapted(plain, shots=1)]
    runs += [adapted(made_run({"a": 0.5}, "sdg", seed=1))]  # another seed of the parent
    runs += [adapted(plain, method="ccsa", from_scratch=True), adapted(plain, target="usps")]
    assert [(group.title, len(group.runs)) for group in contenders_of(runs, "bench")] == [
        ("SDG", 1),
        ("SDG, 7 shots of svhn", 3),
        ("SDG, 10 shots of svhn", 1),
        ("SDG, 1 shot of svhn", 1),
        ("CCSA from scratch, 7 shots of svhn", 1),
        ("SDG, 7 shots of usps", 1),
    ]


def test_adaptations_are_told_apart_by_their_settings_and_all_their_history():
    plain = made_run({"a": 0.5}, "sdg")
    first = adapted(plain)
    quick, twice = adapted(plain, settings={"steps": 9, "log_every": 3}), adapted(first, target="usps", shots=3)
    other = adapted(adapted(plain, settings={"steps": 9}), target="usps", shots=3, folder="other")
    runs = [first, quick, twice, other, adapted(plain, method="MyOwn"), adapted(plain, settings={"vary": 1.0})]
    assert [group.title for group in contenders_of(runs, "bench")] == [
        "SDG, 7 shots of svhn",
        "SDG, 7 shots of svhn, adaptation.steps=9",
        "SDG, 7 shots of svhn, 3 shots of usps",
        "SDG, 7 shots of svhn, 3 shots of usps, adaptation.before.steps=9",
        "SDG, MyOwn 7 shots of svhn",
        "SDG, 7 shots of svhn, vary=1",
    ]


def test_other_images_of_one_name_are_another_target():
    plain = made_run({"a": 0.5}, "sdg")
    runs = [adapted(plain, fingerprint=name) for name in "ab"]
    title = "SDG, 7 shots of svhn, target data="
    assert [group.title for group in contenders_of(runs, "bench")] == [f"{title}a", f"{title}b"]


def test_folders_of_draws_are_told_apart_by_all_of_their_path():
    changes = [dict.fromkeys(("alpha", "beta", "steps", "domains"), value) for value in (7, 4)]
    runs = [adapted(made_run({"a": 0.5}, "sdg", **each), folder=f"{each['beta']}/draw-0") for each in changes]
    title = "SDG, 7 shots of svhn"
    assert [group.title for group in contenders_of(runs, "bench")] == [f"{title} (7/draw-0)", f"{title} (4/draw-0)"]


def test_seeds_of_what_was_trained_from_scratch_are_its_draws():
    """Nothing of the parent is in it but its make."""
    one, other = (adapted(made_run({}, "sdg", seed=seed), method="fada", from_scratch=True) for seed in (0, 1))
    assert one.identity.repetition == other.identity.repetition == (0,)
    assert adapted(made_run({}, "sdg", seed=1), draw=2).identity.repetition == (1, 2)
    assert changed(one) == {}
    assert changed(adapted(made_run({}, "sdg", beta=0.0), settings={"steps": 9})) == {"beta": 0.0}


def test_adapted_runs_count_where_they_were_scored():
    run = made_run({"home": 0.9, "x": 0.5})
    comparison = compare([run, adapted(run)], "bench")
    few_shot, plain = sorted(comparison.contenders, key=lambda each: not each.adapted_to)
    assert comparison.averages(plain) == [0.5]
    assert comparison.rivals == [plain, few_shot]  # adapted to a domain of another benchmark
    assert few_shot.mean("x", "accuracy") == 0.5


def test_values_and_averages(tmp_path):
    for seed, value in enumerate((0.2, 0.4)):
        make_run(tmp_path / str(seed), seed=seed, accuracies={"s": 0.9, "x": value, "y": 0.6})
    comparison = compare([read_run(tmp_path / "0"), read_run(tmp_path / "1")], "bench")
    (group,) = comparison.contenders
    assert [comparison.estimate(group, name).values for name in "sxy"] == [(0.9, 0.9), (0.2, 0.4), (0.6, 0.6)]
    assert [group.mean(name, "accuracy") for name in "sxy"] == pytest.approx([0.9, 0.3, 0.6])
    assert comparison.averages(group) == [0.4, 0.5]
