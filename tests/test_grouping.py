from __future__ import annotations

from dataclasses import replace

from onedomain.grouping import group_runs
from onedomain.manifest import AdaptationInfo
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


def test_an_adapted_run_is_not_taken_for_another_seed_of_its_parent(tmp_path):
    plain = read_run(make_run(tmp_path / "a", "sdg", 0, {}))
    info = {
        "method": "fine-tune",
        "settings": {"steps": 9},
        "from_scratch": False,
        "target": "svhn",
        "benchmark": "digits",
        "split": "train",
        "fingerprint": "",
        "shots": 7,
        "draw": 0,
        "missing_classes": (),
        "parent": "a",
        "parent_weights": "",
        "images": (),
    }

    def adapted(**changes):
        adaptation = AdaptationInfo(**{**info, **changes})
        return replace(plain, manifest=plain.manifest.model_copy(update={"adaptation": adaptation}))

    groups = group_runs(
        [plain, adapted(), adapted(draw=1), adapted(shots=10), adapted(method="ccsa", from_scratch=True)]
    )
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("sdg", 1),
        ("sdg, fine-tune 7 svhn", 2),
        ("sdg, fine-tune 10 svhn", 1),
        ("ccsa 7 svhn", 1),
    ]


def test_accuracies_and_averages(tmp_path):
    for seed, value in enumerate((0.2, 0.4)):
        make_run(tmp_path / str(seed), seed=seed, accuracies={"s": 0.9, "x": value, "y": 0.6})
    (group,) = group_runs([read_run(tmp_path / "0"), read_run(tmp_path / "1")])
    assert group.accuracies("bench") == {"s": [0.9, 0.9], "x": [0.2, 0.4], "y": [0.6, 0.6]}
    assert group.averages("bench") == [0.4, 0.5]
