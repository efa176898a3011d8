from __future__ import annotations

import pytest
import torch

from onedomain.components.augmentations.lighting import relit

AS_IT_IS = {"contrast": 0.0, "brightness": 0.0, "inverted": 0.0, "within": (0.0, 1.0)}


def some(count: int = 200, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return 0.4 + 0.2 * torch.rand(count, channels, 6, 5, generator=generator, dtype=torch.float64)


def test_nothing_asked_for_changes_nothing():
    images = some()
    torch.testing.assert_close(relit(images, **AS_IT_IS), images)


def test_contrast_stretches_each_channel_around_its_mean():
    images = some()
    lit = relit(images, **{**AS_IT_IS, "contrast": 0.5})
    torch.testing.assert_close(lit.mean((2, 3)), images.mean((2, 3)))
    factors = lit.std((2, 3)) / images.std((2, 3))
    assert 1 / 1.5 <= factors.min() < 0.72
    assert 1.4 < factors.max() <= 1.5
    assert not torch.allclose(factors[:, 0], factors[:, 1])
    assert abs(factors.log().mean()) < 0.05  # as often lower as higher


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 3.0)])
def test_brightness_shifts_by_a_share_of_the_range(low, high):
    images = low + (high - low) * some()
    lit = relit(images, **{**AS_IT_IS, "brightness": 0.2, "within": (low, high)})
    shift = (lit - images) / (high - low)
    torch.testing.assert_close(shift, shift[:, :, :1, :1].expand_as(shift))
    assert -0.2 <= shift.min() < -0.19
    assert 0.19 < shift.max() <= 0.2


def test_inverted_is_bright_for_dark_of_all_channels_at_once():
    images = some()
    torch.testing.assert_close(relit(images, **{**AS_IT_IS, "inverted": 1.0}), 1 - images)
    torch.testing.assert_close(relit(images, **{**AS_IT_IS, "inverted": 1.0, "within": (-1.0, 3.0)}), 2 - images)
    torch.manual_seed(0)
    lit = relit(images, **{**AS_IT_IS, "inverted": 0.25})
    chosen = torch.isclose(lit, 1 - images).flatten(1).all(1)
    assert torch.equal(lit[~chosen], images[~chosen])
    assert 30 <= chosen.sum() <= 70


def test_values_stay_within_the_range_and_images_in_their_layout():
    images = torch.rand(20, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    lit = relit(images, contrast=3.0, brightness=0.8, inverted=0.5, within=(0.0, 1.0))
    assert (lit.min(), lit.max()) == (0, 1)
    assert lit.is_contiguous(memory_format=torch.channels_last)
