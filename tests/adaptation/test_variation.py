"""Drawn images, moved and relit: alike for all adaptations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from onedomain.adaptation import adaptation_class, adaptation_names
from onedomain.adaptation.fine_tune import FineTune
from tests.adaptation.conftest import make_dim
from tests.conftest import make_tiny


def varied(domain, **settings):
    method = FineTune(**settings)
    method.meet(domain)
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
    torch.manual_seed(0)
    images, labels = method.varied(dense.batch(range(12)))
    before = dense.batch(range(12))
    assert not torch.equal(labels, before.labels)
    # White is 1 and black is 0, and an interpolated pixel is nearer to the nearest one's: they agree nearly everywhere.
    light = images.mean(1)
    middle = light.flatten(1).aminmax(dim=1)
    threshold = ((middle.min + middle.max) / 2)[:, None, None]
    assert ((light > threshold) == labels.bool()).float().mean() > 0.9


@pytest.mark.parametrize("name", [name for name in adaptation_names() if adaptation_class(name).from_scratch])
def test_from_scratch_the_target_varies_and_the_source_does_not(name):
    source, shots = make_tiny(), make_dim(12)
    seen = {}
    for vary in (0, 1):
        method = adaptation_class(name)(vary=vary, shots_a_class=1)
        method.meet(shots)
        method.device = torch.device("cpu")
        torch.manual_seed(0)
        batch = source.batch(range(6))
        before = batch.images.clone()
        seen[vary] = method.beside(batch)
        assert torch.equal(batch.images, before)
    assert torch.equal(seen[0].labels, seen[1].labels)
    assert not torch.equal(seen[0].images, seen[1].images)
    plain = shots.batch(range(12)).images
    assert all((image == plain).flatten(1).all(1).any() for image in seen[0].images)
    assert not any((image == plain).flatten(1).all(1).any() for image in seen[1].images)
