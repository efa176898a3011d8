from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onedomain.benchmarks import find_benchmark
from onedomain.data.datasets import digits as digits_data
from onedomain.data.generated import digits_lite
from onedomain.data.generated.shifted import COMPOSED, SEVERITIES, SHIFTS, graded, shifted


@pytest.fixture(scope="module")
def digits():
    return digits_lite.source()[1].subset(range(200))


@pytest.mark.parametrize("name", [*SHIFTS, *COMPOSED])
def test_a_shift_keeps_labels_and_shape_changes_every_image_and_is_deterministic(digits, name):
    moved = shifted(digits, name)
    assert moved.name == name
    assert np.array_equal(moved.labels, digits.labels)
    assert moved.images.shape == digits.images.shape
    assert moved.images.dtype == np.uint8
    difference = np.abs(moved.images.astype(int) - digits.images).mean((1, 2, 3))
    assert difference.min() > 1
    assert np.array_equal(moved.images, shifted(digits, name).images)
    assert name == "inverted" or not np.array_equal(moved.images, shifted(digits, name, seed=1).images)


def test_values_of_simple_shifts(digits):
    assert np.array_equal(shifted(digits, "inverted").images, 255 - digits.images)
    spread = np.ptp(shifted(digits, "low-contrast").images.astype(int), axis=(1, 2, 3))
    assert spread.max() <= 129
    assert spread.min() >= 50


def test_the_images_are_neither_trained_on_nor_a_target(real_data):
    benchmark = find_benchmark("digits-shifted")
    trained = {image.tobytes() for image in benchmark.train(real_data).images}
    held_out = benchmark.held_out(real_data)
    assert len(held_out) == 2000
    assert np.mean([image.tobytes() in trained for image in held_out.images]) == 0
    assert not set(benchmark.targets) & set(find_benchmark("digits").targets)


def test_shifts_are_composed_in_turn(digits):
    there_and_back = shifted(digits, "inverted+inverted")
    assert np.array_equal(there_and_back.images, digits.images)
    assert there_and_back.name == "inverted+inverted"
    noisy, inverted = shifted(digits, "noisy+inverted").images, shifted(digits, "inverted+noisy").images
    assert np.abs(noisy.astype(int) - (255 - shifted(digits, "noisy").images)).max() <= 1
    assert not np.array_equal(noisy, inverted)


@pytest.mark.parametrize("name", ["digits-shifted", "digits-composed"])
def test_shots_are_drawn_from_other_images_under_other_chances(real_data, name):
    benchmark = find_benchmark(name)
    trained = {image.tobytes() for image in benchmark.train(real_data).images}
    clean, held_out = digits_data.for_shots(real_data), benchmark.held_out(real_data)
    assert len(clean) == 1000
    assert not {image.tobytes() for image in clean.images} & trained
    assert not set(clean.image_fingerprints()) & set(held_out.image_fingerprints())
    for target in benchmark.targets:
        pool, scored = benchmark.target_train[target](real_data), benchmark.targets[target](real_data)
        assert not set(pool.image_fingerprints()) & set(scored.image_fingerprints())
        assert pool.name == scored.name == target
    # As many images, from the first on: would chance repeat itself, they would be coloured alike.
    one, other = (
        each[next(name for name in each if "coloured" in name)](real_data).images[:50, 0, 0]
        for each in (benchmark.target_train, benchmark.targets)
    )
    assert np.mean(np.abs(one.astype(int) - other) < 3) < 0.2


def test_severities_lead_step_by_step_from_the_source_to_the_shift(digits):
    some = digits.subset(np.arange(0, 200, 5))
    for name in SHIFTS:
        end = shifted(some, name)
        ways = [np.abs(graded(digits, name, s).images.astype(int) - some.images).mean() for s in SEVERITIES]
        assert all(near < far for near, far in pairwise(ways))
        assert np.array_equal(graded(digits, name, 5).images, end.images)
    assert graded(digits, "noisy", 3).name == "noisy-3"
