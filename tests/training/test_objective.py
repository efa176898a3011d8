"""What settings are chosen by: never a target, always the same held-out images, and none of them trained on."""

from __future__ import annotations

import numpy as np
import pytest

from onedomain.data.domain import Domain
from onedomain.data.generated.shifted import SHIFTS
from onedomain.errors import UserError
from onedomain.evaluation.scores import Evaluation
from onedomain.training import objective
from onedomain.training.objective import (
    AUGMENTED,
    CATEGORIES,
    HOME,
    OBJECTIVES,
    Judge,
    Objective,
    divide,
    parse_objective,
)


def numbered(count: int = 60, dense: bool = False) -> Domain:
    """Each image has its number in its first pixels."""
    images = np.zeros((count, 8, 8, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(count)
    labels = np.arange(count) % 3
    return Domain("own", "train", images, np.repeat(labels, 64).reshape(-1, 8, 8) if dense else labels, ("a", "b", "c"))


def numbers(domain: Domain) -> set[int]:
    return set(domain.images[:, 0, 0, 0].tolist())


def test_every_shift_has_one_category():
    assert sorted(sum(CATEGORIES.values(), ())) == sorted(SHIFTS)


def test_held_out_images_are_moved_by_every_shift_and_never_trained_on():
    source, judged = divide(numbered(), Objective("generated-shifts"))
    assert list(judged) == [HOME, *sum(CATEGORIES.values(), ())]
    assert len(judged[HOME]) == 12
    assert numbers(source) | numbers(judged[HOME]) == set(range(60))
    assert not numbers(source) & numbers(judged[HOME])
    for name, domain in judged.items():
        assert np.array_equal(domain.labels, judged[HOME].labels), name
        assert name == HOME or not np.array_equal(domain.images, judged[HOME].images)


def test_of_augmentations_one_category_is_judged_and_the_others_are_trained_on():
    source, judged = divide(numbered(), Objective(AUGMENTED, "colour"))
    assert list(judged) == [HOME, *CATEGORIES["colour"]]
    plain, changed = source.images[:48], source.images[48:]
    assert len(source) == 96
    assert not set(plain[:, 0, 0, 0].tolist()) & numbers(judged[HOME])
    dark = changed.mean((1, 2, 3)) < 200  # inverted images would be nearly white
    assert dark.all()
    assert {fold.text for fold in Objective(AUGMENTED).folds(False)} == {f"{AUGMENTED}:{name}" for name in CATEGORIES}


def test_masks_are_not_reshaped():
    _, judged = divide(numbered(dense=True), Objective("generated-shifts"))
    assert "reshaped" not in judged
    assert "shape" not in [fold.category for fold in Objective(AUGMENTED).folds(True)]
    with pytest.raises(UserError, match="away from their masks"):
        divide(numbered(dense=True), Objective(AUGMENTED, "shape"))


def test_the_only_image_of_a_class_is_trained_on():
    rare = numbered()
    rare = Domain("own", "train", rare.images, np.where(np.arange(60) == 7, 2, np.arange(60) % 2), rare.classes)
    source, _ = divide(rare, Objective("generated-shifts"))
    assert 7 in numbers(source)


@pytest.mark.parametrize("text", ["svhn", "targets"])
def test_a_target_is_refused(text):
    with pytest.raises(UserError, match="is a target, and settings are never chosen by one") as error:
        parse_objective(text, ["svhn", "usps"])
    assert all(name in str(error.value) for name in OBJECTIVES)


@pytest.mark.parametrize("text", ["accuracy", "generated-shifts:colour", "held-out-augmentations:taste"])
def test_an_unknown_objective_is_refused(text):
    with pytest.raises(UserError, match="is not known"):
        parse_objective(text)


def test_too_few_images_are_refused():
    with pytest.raises(UserError, match="has 40 images; allowed: at least 50"):
        divide(numbered(40), Objective("generated-shifts"))


def test_at_a_moment_of_training_a_few_images_of_every_class_are_looked_at(monkeypatch):
    """Also where the images are sorted by class; at other steps nothing is looked at."""
    source = numbered()
    source = Domain("own", "train", source.images, np.repeat([0, 1, 2], 20), source.classes)
    _, judged = divide(source, Objective("generated-shifts"))
    seen = []

    class Run:
        def evaluate(self, domains):
            seen.append(domains)
            return Evaluation({}, ())

    monkeypatch.setattr(objective, "FEW", 5)
    monkeypatch.setattr(objective, "_mean", lambda evaluation: 0.5)
    judge = Judge(judged, steps=8)
    for done in range(1, 9):
        judge.after_step(Run(), done)
    assert len(seen) == 3
    assert HOME not in seen[0]
    assert all(len(each) == 5 and set(each.labels.tolist()) == {0, 1, 2} for each in seen[0].values())
