from __future__ import annotations

from onedomain.grouping import group_runs
from onedomain.records import read_run
from tests.figures.made import make_run


def labels(tmp_path, *runs):
    read = []
    for number, (method, seed, settings) in enumerate(runs):
        read.append(read_run(make_run(tmp_path / f"run{number}", method, seed, settings)))
    return [(group.label, len(group.runs)) for group in group_runs(read)]


def test_seeds_are_together_and_methods_apart(tmp_path):
    assert labels(tmp_path, ("erm", 0, {}), ("sdg", 0, {}), ("erm", 1, {})) == [("erm", 2), ("sdg", 1)]


def test_a_group_is_named_by_what_is_unusual_in_it(tmp_path):
    found = labels(tmp_path, ("sdg", 0, {}), ("sdg", 0, {"beta": 0.0}), ("sdg", 0, {"domains": 1}))
    assert found == [("sdg", 1), ("sdg, beta=0", 1), ("sdg, domains=1", 1)]


def test_of_two_both_are_named(tmp_path):
    found = labels(tmp_path, ("uncertain-sdg", 0, {}), ("uncertain-sdg", 0, {"uncertainty": False}))
    assert found == [("uncertain-sdg, uncertainty=true", 1), ("uncertain-sdg, uncertainty=false", 1)]


def test_many_differences_are_named_by_the_folder(tmp_path):
    found = labels(tmp_path, ("sdg", 0, {}), ("sdg", 0, {"beta": 0.0, "alpha": 0.0, "steps": 3}))
    assert found == [("sdg (run0)", 1), ("sdg (run1)", 1)]


def test_accuracies_and_averages(tmp_path):
    for seed, value in enumerate((0.2, 0.4)):
        make_run(tmp_path / str(seed), seed=seed, accuracies={"s": 0.9, "x": value, "y": 0.6})
    (group,) = group_runs([read_run(tmp_path / "0"), read_run(tmp_path / "1")])
    assert group.accuracies("bench") == {"s": [0.9, 0.9], "x": [0.2, 0.4], "y": [0.6, 0.6]}
    assert group.averages("bench") == [0.4, 0.5]
