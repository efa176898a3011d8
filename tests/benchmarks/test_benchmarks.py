from __future__ import annotations

import numpy as np
import pytest

from onedomain.benchmarks import BENCHMARKS, FEW_SHOT_DIGITS, family_of, find_benchmark, find_target
from onedomain.errors import UserError
from onedomain.methods import method_class, method_names


def test_a_missing_domain_is_named_and_the_others_still_count(real_data, tmp_path):
    (tmp_path / "digits").mkdir()
    for name in ("mnist", "usps"):
        (tmp_path / "digits" / f"{name}.npz").symlink_to(real_data.resolve() / "digits" / f"{name}.npz")
    domains, missing = find_benchmark("digits").load_for_scoring(tmp_path)
    assert list(domains) == ["mnist", "usps"]
    assert len(missing) == 3
    assert any("'svhn'" in reason and "onedomain data prepare svhn" in reason for reason in missing)


def test_without_any_unseen_domain_there_is_nothing_to_score(tmp_path):
    with pytest.raises(UserError, match="no unseen domain is there"):
        find_benchmark("digits").load_for_scoring(tmp_path)


def test_source_and_held_out_images_are_different_ones():
    benchmark = find_benchmark("digits-lite")
    train, held_out = benchmark.train(None), benchmark.held_out(None)
    rows = {image.tobytes() for image in train.images}
    overlap = np.mean([image.tobytes() in rows for image in held_out.images])
    assert overlap == 0


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_settings_name_methods_and_fields_that_exist(name):
    for method, settings in BENCHMARKS[name].settings.items():
        assert method in method_names()
        method_class(method)(**settings)


def test_few_shot_digits_is_three_tasks_that_are_named():
    tasks = family_of(FEW_SHOT_DIGITS)
    assert [(task.source, list(task.targets)) for task in tasks] == [
        ("usps", ["mnist"]),
        ("mnist", ["svhn"]),
        ("svhn", ["mnist"]),
    ]
    with pytest.raises(UserError, match="'few-shot-digits' is 3 tasks; allowed: few-shot-usps-mnist, few-shot-mnist-"):
        find_benchmark("few-shot-digits")


def test_a_few_shot_task_trains_on_all_and_never_draws_what_it_scores(real_data):
    usps, svhn = find_benchmark("few-shot-usps-mnist"), find_benchmark("few-shot-mnist-svhn")
    assert len(usps.train(real_data)) == 7291
    assert len(usps.held_out(real_data)) == 2007
    drawn_from, scored = svhn.target_train["svhn"](real_data), svhn.targets["svhn"](real_data)
    assert (drawn_from.split, scored.split) == ("train", "test")
    assert not set(drawn_from.image_fingerprints()) & set(scored.image_fingerprints())


def test_digits_that_one_benchmark_trains_on_are_not_scored_as_unseen_by_another():
    for name in ("digits-lite", "digits-shifted", "digits-composed", "digits-graded"):
        assert "few-shot-mnist-svhn" in BENCHMARKS[name].trained_on_by


def test_a_target_is_looked_for_in_the_runs_own_benchmark_first():
    assert find_target("svhn", BENCHMARKS["few-shot-mnist-svhn"]).name == "few-shot-mnist-svhn"
    assert find_target("usps", BENCHMARKS["digits-lite"]).name == "digits"
    assert find_target("night", None) is None
    for benchmark in BENCHMARKS.values():
        assert set(benchmark.target_train) <= set(benchmark.targets)
