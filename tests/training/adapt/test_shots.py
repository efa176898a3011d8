from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.training.shots import draw, left_over, missing_classes, refuse_test_images
from tests.conftest import make_tiny


def dense(count: int = 6) -> Domain:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (count, 4, 4))
    labels[:, 0] = 9
    return Domain("site", "train", rng.random((count, 4, 4, 3), np.float32), labels, ("a", "b", "c"), void=9)


def test_a_draw_has_as_many_of_each_class_and_none_twice(tiny):
    places = draw(tiny, 7, seed=3)
    assert np.bincount(tiny.labels[places]).tolist() == [7, 7, 7]
    assert len(set(places.tolist())) == 21
    ranks = {tuple(places[tiny.labels[places] == label] // 3) for label in range(3)}  # among the images of the class
    assert len(ranks) == 3  # each class is drawn by itself


def test_a_draw_is_a_function_of_the_seed_and_fewer_shots_are_part_of_more(tiny):
    assert draw(tiny, 7, 3).tolist() == draw(tiny, 7, 3).tolist()
    assert draw(tiny, 7, 3).tolist() != draw(tiny, 7, 4).tolist()
    assert set(draw(tiny, 4, 3)) < set(draw(tiny, 7, 3))


def test_every_image_of_a_class_is_drawn_about_as_often(tiny):
    times = np.bincount(np.concatenate([draw(tiny, 5, seed) for seed in range(400)]), minlength=len(tiny))
    assert times.min() > 60  # 100 expected, deviation 9
    assert times.max() < 140


def test_of_dense_labels_so_many_in_all():
    assert len(draw(dense(), 4, 0)) == 4
    with pytest.raises(UserError, match="shots: got 7, and site has 6 images; allowed: at most 6"):
        draw(dense(), 7, 0)


def test_a_class_with_too_few_images_is_named_and_one_without_any_is_not_drawn(tiny):
    keep = np.flatnonzero((tiny.labels != 1) | (np.arange(60) < 10))
    with pytest.raises(UserError, match=r"shots: got 5, and tiny \(train\) has fewer images of class middle \(3\)"):
        draw(tiny.subset(keep), 5, 0)
    without = tiny.subset(np.flatnonzero(tiny.labels != 1))
    places = draw(without, 5, 0)
    assert np.bincount(without.labels[places]).tolist() == [5, 0, 5]
    assert missing_classes(without.subset(places)) == ("middle",)
    assert missing_classes(dense()) == ("c",)
    ignored = replace(dense(), labels=np.arange(6 * 16).reshape(6, 4, 4) % 2, void=2)
    assert missing_classes(ignored) == ()


@pytest.mark.parametrize("shots", [0, -1, 2.5])
def test_shots_are_a_number_from_1(tiny, shots):
    with pytest.raises(UserError, match="allowed: a whole number from 1"):
        draw(tiny, shots, 0)


def test_a_drawn_image_among_those_to_score_is_refused_in_whatever_form(tiny):
    places = draw(tiny, 2, 0)
    drawn = tiny.subset(places).image_fingerprints()
    refuse_test_images("tiny", drawn, make_tiny(seed=7).image_fingerprints())
    test = make_tiny(30, seed=7)
    floats = np.concatenate([test.images, tiny.images[places[:1]]]).astype(np.float32) / 255
    leaked = Domain("test", "test", floats, np.append(test.labels, tiny.labels[places[0]]), tiny.classes)
    with pytest.raises(UserError, match="test: 1 of the images drawn from tiny are among those to score"):
        refuse_test_images("tiny", drawn, leaked.image_fingerprints())


def test_what_is_left_over_holds_no_drawn_image_and_no_copy_of_one(tiny):
    twice = replace(tiny, images=np.concatenate([tiny.images] * 2), labels=np.concatenate([tiny.labels] * 2))
    places = draw(twice, 3, 0)
    images = twice.subset(places).image_fingerprints()
    rest = left_over(twice, places, images)
    assert rest is not None
    assert not set(images) & set(rest.image_fingerprints())
    assert len(rest) == 120 - 2 * len(set(images))
    assert left_over(tiny.subset(places[:1] % 60), np.array([0]), images) is None
