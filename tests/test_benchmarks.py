from __future__ import annotations

import numpy as np
import pytest

from onedomain.benchmarks import BENCHMARKS, find_benchmark
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
