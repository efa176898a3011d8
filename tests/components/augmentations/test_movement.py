from __future__ import annotations

import math

import pytest
import torch

from onedomain.components.augmentations import movement
from onedomain.components.augmentations.movement import lookups, moved
from onedomain.data.domain import Batch

NOTHING = {"turn": 0.0, "zoom": 0.0, "shear": 0.0, "shift": 0.0}
MUCH = {"turn": 40.0, "zoom": 0.5, "shear": 0.5, "shift": 0.3}


def one(angle=0.0, size=1.0, slant=0.0, right=0.0, down=0.0):
    values = (torch.tensor([float(value)], dtype=torch.float64) for value in (angle, size, slant, right, down))
    return lookups(*values)[0]


@pytest.mark.parametrize(
    ("movement", "seen", "looked_up"),
    [
        ({}, (3, 5), (3, 5)),
        ({"right": 2, "down": -1}, (2, -1), (0, 0)),
        ({"size": 2}, (4, -6), (2, -3)),
        ({"slant": 0.5}, (3 + 0.5 * 4, 4), (3, 4)),
        ({"angle": math.pi / 2}, (0, 1), (1, 0)),  # what was to the right is seen below: a turn clockwise
        ({"angle": math.pi / 2, "size": 2, "slant": 1, "right": 5, "down": 7}, (5 - 2 * 3, 7 + 2 * (2 + 3)), (2, 3)),
    ],
)
def test_a_point_is_looked_up_where_it_was(movement, seen, looked_up):
    found = one(**movement) @ torch.tensor([*seen, 1], dtype=torch.float64)
    torch.testing.assert_close(found, torch.tensor(looked_up, dtype=torch.float64))


def test_the_lookup_undoes_slant_turn_size_and_shift():
    angle, size, slant, right, down = 0.4, 1.3, -0.2, 3.0, -2.0
    slanted = torch.tensor([[1, slant], [0, 1]], dtype=torch.float64)
    turned = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]).double()
    point = torch.tensor([2.5, -4.0], dtype=torch.float64)
    seen = size * turned @ slanted @ point + torch.tensor([right, down])
    found = one(angle, size, slant, right, down) @ torch.cat([seen, torch.ones(1, dtype=torch.float64)])
    torch.testing.assert_close(found, point)


def fixed(monkeypatch, *values):
    """All images draw these: angle, size, slant, right, down, as shares of the largest, −1 to 1."""
    drawn = (torch.tensor(values)[:, None] + 1) / 2
    monkeypatch.setattr(movement.torch, "rand", lambda *shape, **_: drawn.expand(5, shape[1]))


def test_no_movement_leaves_images_as_they_are():
    images = torch.rand(5, 3, 8, 12)
    same, labels = moved(Batch(images, torch.arange(5)), **NOTHING)
    torch.testing.assert_close(same, images)
    assert torch.equal(labels, torch.arange(5))


def test_an_image_is_shifted_and_its_rim_goes_on(monkeypatch):
    images = torch.rand(2, 3, 8, 16)
    fixed(monkeypatch, 0.0, 0.0, 0.0, 1.0, -1.0)
    there, _ = moved(Batch(images, torch.arange(2)), **{**NOTHING, "shift": 0.25})  # 4 to the right, 2 up
    torch.testing.assert_close(there[:, :, :6, 4:], images[:, :, 2:, :12])
    torch.testing.assert_close(there[:, :, :6, :4], images[:, :, 2:, :1].expand(-1, -1, -1, 4))


def test_an_image_that_is_not_square_is_turned_without_being_stretched(monkeypatch):
    images = torch.rand(2, 3, 9, 15)
    fixed(monkeypatch, 1.0, 0.0, 0.0, 0.0, 0.0)
    there, _ = moved(Batch(images, torch.arange(2)), **{**NOTHING, "turn": 90.0})
    torch.testing.assert_close(there[:, :, :, 3:12], torch.rot90(images, -1, (2, 3))[:, :, 3:12], atol=1e-4, rtol=0)


def test_every_image_moves_its_own_way_and_within_the_bounds():
    torch.manual_seed(0)
    dot = torch.zeros(300, 1, 41, 41)
    dot[:, :, 20, 20] = 1
    there, _ = moved(Batch(dot, torch.zeros(300)), **{**NOTHING, "shift": 0.25})
    weight = there[:, 0] / there[:, 0].sum((1, 2), keepdim=True)
    rows = (weight.sum(2) * torch.arange(41)).sum(1) - 20
    assert len(set(rows.tolist())) == 300
    assert -10.26 < rows.min() < -9
    assert 9 < rows.max() < 10.26


def test_labels_of_pixels_move_with_their_images():
    torch.manual_seed(1)
    labels = torch.randint(0, 9, (20, 4, 6)).repeat_interleave(6, 1).repeat_interleave(6, 2)
    there = moved(Batch(labels[:, None].float(), labels), **MUCH)
    assert there.labels.dtype == labels.dtype
    assert not torch.equal(there.labels, labels)
    whole = there.images[:, 0] == there.images[:, 0].round()  # not between two patches
    assert 0.4 < whole.float().mean() < 1
    assert (there.images[:, 0].round() == there.labels)[whole].float().mean() > 0.99
