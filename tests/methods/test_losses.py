"""What methods add up to their loss, against sums by hand."""

from __future__ import annotations

import pytest
import torch

from onedomain.components.equations import task_loss
from onedomain.methods import method_class
from onedomain.methods.base import LossMethod
from tests.methods.compared import SETTINGS, begun

# Weights that are nobody's default.
SUMS = {
    "ccsa": ({"weight": 0.3}, {"task": 0.7, "pairs": 0.3}),
    "d-sne": ({"weight": 0.3, "margin": 20.0}, {"task": 0.7, "pairs": 0.3}),
    "jigen": ({"jigsaw_weight": 0.3}, {"task": 1.0, "puzzle": 0.3}),
    "randconv": ({"consistency": 3.0}, {"task": 1.0, "consistency": 3.0}),
    "augmix": ({"consistency": 3.0}, {"task": 1.0, "consistency": 3.0}),
    "pro-randconv": ({}, {"source": 1.0, "changed": 1.0}),
    "moved-randconv": ({}, {"source": 1.0, "changed": 1.0}),
}


def test_the_loss_of_every_method_that_is_one_is_added_up_here():
    assert set(SUMS) == {name for name in SETTINGS if issubclass(method_class(name), LossMethod)}


@pytest.mark.parametrize("name", SUMS)
def test_the_loss_is_the_weighted_sum_of_its_parts(name, tiny):
    settings, weights = SUMS[name]
    losses = {key: value.item() for key, value in begun(name, tiny, **settings).losses(tiny.batch(range(12))).items()}
    loss = losses.pop("loss")
    assert losses.keys() == weights.keys()
    assert min(losses.values()) > 0
    assert loss == pytest.approx(sum(weights[part] * value for part, value in losses.items()))


def test_augmix_learns_the_class_of_the_clean_image_and_that_its_views_are_answered_alike(tiny, monkeypatch):
    method = begun("augmix", tiny)
    method.network.module.eval()  # all three images can then be passed one by one
    images, labels = tiny.batch(range(12))
    views = [1 - images, images.flip(3)]
    given = iter(views)
    monkeypatch.setattr(method, "_mixed", lambda unit: next(given))
    losses = method.losses(tiny.batch(range(12)))
    with torch.no_grad():
        every = [method.network(each) for each in (images, *views)]
    assert losses["task"].item() == pytest.approx(task_loss(every[0], labels).mean().item(), rel=1e-5)
    said = torch.stack(every).softmax(2)
    mean = said.mean(0)
    jensen_shannon = sum((p * (p / mean).log()).sum(1).mean() for p in said) / 3
    assert losses["consistency"].item() == pytest.approx(jensen_shannon.item(), rel=1e-4)


@pytest.mark.parametrize(("original", "kept"), [(0.0, 0), (1.0, 60)])
def test_original_is_the_chance_that_randconv_leaves_an_image_as_it_is(tiny, original, kept):
    images = tiny.batch(range(60)).images
    view = begun("randconv", tiny, original=original).view(images)
    assert (view == images).flatten(1).all(1).sum() == kept
