from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from onedomain.adaptation.fine_tune import FineTune
from onedomain.networks import own_network
from tests.adaptation.conftest import make_dim
from tests.conftest import TinyNet


@pytest.mark.parametrize(
    ("settings", "shots", "steps"), [({}, 70, 438), ({}, 100, 625), ({"epochs": 3}, 16, 3), ({"steps": 9}, 70, 9)]
)
def test_the_number_of_steps_is_known_from_the_number_of_images(settings, shots, steps):
    assert FineTune(**settings).planned(shots)["steps"] == steps


def test_rate_and_batch_are_the_papers():
    assert (FineTune().settings.learning_rate, FineTune().settings.batch_size) == (1e-4, 16)


def test_all_weights_learn_the_drawn_images():
    torch.manual_seed(0)
    method, shots = FineTune(learning_rate=1e-2), make_dim(12)
    method.attach(own_network(TinyNet()), torch.device("cpu"))
    method.meet(shots)
    method.begin(shots)
    before = {name: weight.clone() for name, weight in method.network.module.named_parameters()}
    losses = [method.step(shots.batch(range(12)))["loss"] for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    assert all(not torch.equal(weight, before[name]) for name, weight in method.network.module.named_parameters())


def varied(domain, **settings):
    method = FineTune(**settings)
    method.attach(own_network(TinyNet()), torch.device("cpu"))
    method.meet(domain)
    method.begin(domain)
    torch.manual_seed(0)
    return method.varied(domain.batch(range(len(domain))))


def test_by_default_as_in_the_paper_it_shows_the_drawn_images_as_they_are():
    shots = make_dim(12)
    batch = varied(shots)
    assert torch.equal(batch.images, shots.batch(range(12)).images)


def test_drawn_images_are_moved_and_relit_more_the_larger_vary_is():
    shots = make_dim(12)
    plain = shots.batch(range(12))
    little, much = varied(shots, vary=0.2), varied(shots, vary=1)
    assert torch.equal(much.labels, plain.labels)
    assert 0 < (little.images - plain.images).abs().mean() < (much.images - plain.images).abs().mean()
    assert much.images.min() >= 0
    assert much.images.max() <= 1


def test_inverting_is_asked_for_by_itself():
    shots = make_dim(12)
    plain = shots.batch(range(12)).images
    torch.testing.assert_close(varied(shots, invert=1).images, 1 - plain)


def test_labels_of_pixels_move_with_their_images():
    shots = make_dim(12)
    pixels = (shots.images[..., 0] > 70).astype("int64")
    dense = replace(shots, images=(255 * pixels)[..., None].astype("uint8").repeat(3, 3), labels=pixels)
    method = FineTune(vary=1)
    method.meet(dense)
    method.value_range = dense.value_range
    torch.manual_seed(0)
    images, labels = method.varied(dense.batch(range(12)))
    before = dense.batch(range(12))
    assert not torch.equal(labels, before.labels)
    # White is 1 and black is 0, and an interpolated pixel is nearer to the nearest one's: they agree nearly everywhere.
    light = images.mean(1)
    middle = light.flatten(1).aminmax(dim=1)
    threshold = ((middle.min + middle.max) / 2)[:, None, None]
    assert ((light > threshold) == labels.bool()).float().mean() > 0.9
