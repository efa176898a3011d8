from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from onedomain.components.augmentations.augmix import (
    OPERATIONS,
    augmix,
    autocontrast,
    equalize,
    posterize,
    rotate,
    solarize,
)


def images(n=5, side=32):
    pixels = np.random.default_rng(0).integers(20, 200, (n, side, side, 3), dtype=np.uint8)
    return pixels, torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


def as_bytes(tensor):
    return (255 * tensor).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize(("ours", "pillow"), [(autocontrast, ImageOps.autocontrast), (equalize, ImageOps.equalize)])
def test_operations_without_strength_against_pillow(ours, pillow):
    pixels, tensor = images()
    changed = as_bytes(ours(tensor, torch.zeros(5)))
    for place in range(5):
        expected = np.asarray(pillow(Image.fromarray(pixels[place]))).astype(int)
        assert np.abs(changed[place].astype(int) - expected).max() <= (1 if ours is autocontrast else 0)  # rounding


def test_posterize_and_solarize_against_pillow():
    pixels, tensor = images()
    few = as_bytes(posterize(tensor, torch.full((5,), 0.3)))
    dark = as_bytes(solarize(tensor, torch.full((5,), 0.5)))
    for place in range(5):
        image = Image.fromarray(pixels[place])
        assert np.array_equal(few[place], np.asarray(ImageOps.posterize(image, 3)))
        assert np.array_equal(dark[place], np.asarray(ImageOps.solarize(image, 128)))


def test_no_strength_moves_nothing():
    _, tensor = images()
    for name in ("rotate", "shear_x", "shear_y", "translate_x", "translate_y"):
        assert torch.allclose(OPERATIONS[name](tensor, torch.zeros(5)), tensor, atol=1e-5), name


def test_translation_by_hand(monkeypatch):
    monkeypatch.setattr("onedomain.components.augmentations.augmix._sign", torch.ones_like)
    image = torch.zeros(1, 1, 9, 9)
    image[0, 0, 4, 7] = 1.0
    assert (OPERATIONS["translate_x"](image, torch.ones(1)) > 0.9).nonzero().tolist() == [
        [0, 0, 4, 4]
    ]  # a third of the width
    assert (OPERATIONS["translate_y"](image.transpose(2, 3), torch.ones(1)) > 0.9).nonzero().tolist() == [[0, 0, 4, 4]]


@pytest.mark.parametrize(("height", "width"), [(33, 33), (21, 63), (63, 21)])
def test_a_rotation_keeps_lengths_whatever_the_shape(height, width, monkeypatch):
    monkeypatch.setattr("onedomain.components.augmentations.augmix._sign", torch.ones_like)
    image = torch.zeros(1, 1, height, width)
    image[0, 0, height // 2, width // 2 + 8] = 1.0  # eight pixels to the right of the middle
    turned = rotate(image, torch.ones(1))[0, 0]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    row = (turned * rows).sum() / turned.sum() - height // 2
    column = (turned * columns).sum() / turned.sum() - width // 2
    assert abs(row.item()) == pytest.approx(8 * 0.5, abs=0.3)  # 30°
    assert column.item() == pytest.approx(8 * 0.866, abs=0.3)


def test_the_mixture_stays_in_the_range_and_every_image_has_its_own():
    _, tensor = images()
    same = tensor[:1].repeat(20, 1, 1, 1)
    torch.manual_seed(0)
    mixed = augmix(same, severity=1.0)
    assert mixed.min() >= -1e-6
    assert mixed.max() <= 1 + 1e-6
    assert len({round(float(image.sum()), 3) for image in mixed}) > 15
