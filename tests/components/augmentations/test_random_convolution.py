from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onedomain.components.augmentations.random_convolution import (
    mixed_with_original,
    progressive_convolution,
    random_convolution,
)


def images(n=6, c=3, side=12):
    rand = torch.rand(n, c, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return rand.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_each_image_has_a_kernel_of_its_own_and_it_is_a_convolution(size, monkeypatch):
    drawn = []
    randn = torch.randn

    def kept(*args, **kwargs):
        drawn.append(randn(*args, **kwargs))
        return drawn[-1]

    monkeypatch.setattr(torch, "randn", kept)
    result = random_convolution(images(), (size,))
    for place in range(6):
        kernel = drawn[0][place] / (size * 3**0.5)
        alone = F.conv2d(images()[place : place + 1], kernel, padding=size // 2)
        assert torch.allclose(result[place : place + 1], alone, atol=1e-10)
    assert not torch.allclose(drawn[0][0], drawn[0][1])


def test_sizes_are_mixed_and_small_kernels_are_small():
    torch.manual_seed(0)
    point = torch.zeros(200, 1, 15, 15)
    point[:, :, 7, 7] = 1
    reach = (random_convolution(point, (1, 3, 7)) != 0).flatten(1).sum(1)
    assert set(reach.tolist()) == {1, 9, 49}


def test_values_keep_their_scale():
    torch.manual_seed(0)
    noise = torch.randn(400, 3, 8, 8)
    for size in (1, 3, 7):
        inside = random_convolution(noise, (size,))[:, :, 3:5, 3:5]
        assert inside.std().item() == pytest.approx(1.0, abs=0.12)


def test_mixing_stays_between_both():
    x, y = images(), images() + 1
    mixed = mixed_with_original(x, y) - x
    assert (mixed >= 0).all()
    assert (mixed <= 1).all()
    shares = mixed.flatten(1)
    assert torch.allclose(shares, shares[:, :1].expand_as(shares), atol=1e-12)
    assert len({round(share, 6) for share in shares[:, 0].tolist()}) == 6


def test_without_displacement_a_block_is_a_convolution_with_contrast(monkeypatch):
    torch.manual_seed(3)
    given = images()
    drawn = []
    randn = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *a, **k: drawn.append(randn(*a, **k)) or drawn[-1])
    rand_widths = []
    rand = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *a, **k: rand_widths.append(rand(*a, **k)) or rand_widths[-1])
    result = progressive_convolution(given, repeats=2, offset=0.0)
    kernels, contrast = drawn[0], drawn[-1]
    away = torch.arange(3, dtype=torch.float64) - 1
    for place in range(6):
        smooth = torch.exp(-(away[:, None] ** 2 + away**2) / (2 * rand_widths[0][place, 0, 0] ** 2))
        kernel = kernels[place] / 27**0.5 * smooth
        x = 2 * given[place : place + 1] - 1
        for _ in range(2):
            x = F.conv2d(x, kernel, padding=1)
            x = (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-5)
            x = torch.tanh(0.5 * contrast[0, place] * x + 0.5 * contrast[1, place])
        assert torch.allclose(result[place : place + 1], (x + 1) / 2, atol=1e-9)


def test_the_result_stays_in_the_range_and_displacement_changes_it():
    torch.manual_seed(0)
    still = progressive_convolution(images() * 4 - 2, repeats=3, offset=0.0, value_range=(-2.0, 2.0))
    torch.manual_seed(0)
    moved = progressive_convolution(images() * 4 - 2, repeats=3, offset=0.5, value_range=(-2.0, 2.0))
    assert still.min() >= -2
    assert still.max() <= 2
    assert still.min() < 0
    assert not torch.allclose(still, moved, atol=1e-3)
    assert torch.isfinite(progressive_convolution(torch.zeros(2, 1, 8, 8), repeats=10)).all()
