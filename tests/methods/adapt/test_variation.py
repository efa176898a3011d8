"""Drawn images, moved and relit: alike for all adaptations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from onedomain.components.augmentations.flips_and_crops import flipped_and_cropped
from onedomain.components.augmentations.lighting import relit
from onedomain.components.augmentations.movement import moved
from onedomain.components.equations import task_loss
from onedomain.data.domain import Batch
from onedomain.methods import base as methods_base
from onedomain.methods.adapt import adaptation_names, base
from onedomain.methods.adapt.base import Adaptation
from onedomain.methods.adapt.fine_tune import FineTune
from onedomain.networks import own_network
from onedomain.settings import Settings
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny, set_up
from tests.training.adapt.test_adapt import quick


def begun(method, shots):
    set_up(method, own_network(TinyNet()), shots, shots=shots)


def shown(domain, **settings):
    method = FineTune(**settings)
    begun(method, domain)
    torch.manual_seed(0)
    return method.shown(domain.batch(range(len(domain))))


def test_by_default_as_in_the_paper_it_shows_the_drawn_images_as_they_are():
    shots = make_dim(12)
    batch = shown(shots)
    assert torch.equal(batch.images, shots.batch(range(12)).images)


def test_drawn_images_are_moved_and_relit_more_the_larger_vary_is():
    shots = make_dim(12)
    plain = shots.batch(range(12))
    little, much = shown(shots, vary=0.2), shown(shots, vary=1)
    assert torch.equal(much.labels, plain.labels)
    assert 0 < (little.images - plain.images).abs().mean() < (much.images - plain.images).abs().mean()
    assert much.images.min() >= 0
    assert much.images.max() <= 1


def test_inverting_is_asked_for_by_itself():
    shots = make_dim(12)
    plain = shots.batch(range(12)).images
    torch.testing.assert_close(shown(shots, invert=1).images, 1 - plain)


def test_labels_of_pixels_move_with_their_images():
    shots = make_dim(12)
    pixels = (shots.images[..., 0] > 70).astype("int64")
    dense = replace(shots, images=(255 * pixels)[..., None].astype("uint8").repeat(3, 3), labels=pixels)
    method = FineTune(vary=1)
    begun(method, dense)
    torch.manual_seed(0)
    images, labels = method.shown(dense.batch(range(12)))
    before = dense.batch(range(12))
    assert not torch.equal(labels, before.labels)
    # White is 1 and black is 0, and an interpolated pixel is nearer to the nearest one's: they agree nearly everywhere.
    light = images.mean(1)
    middle = light.flatten(1).aminmax(dim=1)
    threshold = ((middle.min + middle.max) / 2)[:, None, None]
    assert ((light > threshold) == labels.bool()).float().mean() > 0.9


@pytest.fixture
def changes(monkeypatch):
    """What is moved, relit, and flipped and cropped, call by call, while something is adapted."""
    seen = {"moved": [], "relit": [], "flipped": []}

    def spied(name, function):
        def call(given, **options):
            seen[name].append(given.images if isinstance(given, Batch) else given)
            return function(given, **options)

        return call

    monkeypatch.setattr(base, "moved", spied("moved", moved))
    monkeypatch.setattr(base, "relit", spied("relit", relit))
    monkeypatch.setattr(methods_base, "flipped_and_cropped", spied("flipped", flipped_and_cropped))
    return seen


def known(images, domain):
    """Whether every one of the images is one of the domain's, unchanged."""
    whole = domain.batch(range(len(domain))).images
    return all((image == whole).flatten(1).all(1).any() for image in images)


@pytest.mark.parametrize("name", adaptation_names())
def test_while_adapting_every_drawn_image_is_varied_once_a_step_and_no_other(run, changes, name):
    target = make_dim()
    method = quick(name, vary=1, invert=0.25)
    run.adapt(target, 4, method=method, source=make_tiny(), held_out=make_tiny(30, seed=9), progress=False)
    steps = 12 - getattr(method.settings, "pretrain_steps", 0)
    assert len(changes["moved"]) == len(changes["relit"]) == steps
    assert all(known(images, target) for images in changes["moved"])
    assert changes["flipped"] == []


@pytest.mark.parametrize("name", adaptation_names())
def test_flips_and_crops_are_of_all_images_that_are_learned(run, changes, name):
    target, source = make_dim(), make_tiny()
    method = quick(name, flips_and_crops=True)
    run.adapt(target, 4, method=method, source=source, held_out=make_tiny(30, seed=9), progress=False)
    of_target = sum(known(images, target) for images in changes["flipped"])
    assert of_target == 12 - getattr(method.settings, "pretrain_steps", 0)
    assert len(changes["flipped"]) - of_target == (12 if method.from_scratch else 0)
    assert changes["moved"] == []


class Own(Adaptation):
    """A user's: settings without `vary`, a step of its own."""

    Settings = Settings
    settings: Settings

    def step(self, batch, step):
        loss = task_loss(self.network(batch.images), batch.labels).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return {"loss": loss.detach()}


def test_an_adaptation_of_ones_own_needs_no_such_settings(run):
    adapted = run.adapt(make_dim(), 4, method=Own(steps=3, batch_size=6), source=make_tiny(), progress=False)
    assert adapted.run.manifest.adaptation.method == "Own"
