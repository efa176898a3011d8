from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from onedomain.augmix import OPERATIONS, augmix, autocontrast, equalize, posterize, rotate, solarize, translate_x


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
    few = as_bytes(posterize(tensor, torch.ones(5)))
    dark = as_bytes(solarize(tensor, torch.full((5,), 0.5)))
    for place in range(5):
        image = Image.fromarray(pixels[place])
        assert np.array_equal(few[place], np.asarray(ImageOps.posterize(image, 4)))
        assert np.array_equal(dark[place], np.asarray(ImageOps.solarize(image, 128)))


def test_no_strength_moves_nothing():
    _, tensor = images()
    for name in ("posterize", "rotate", "shear_x", "shear_y", "translate_x", "translate_y"):
        assert torch.allclose(OPERATIONS[name](tensor, torch.zeros(5)), tensor, atol=1e-5), name


def test_translation_and_rotation_by_hand():
    image = torch.zeros(1, 1, 9, 9)
    image[0, 0, 4, 1] = 1.0
    torch.manual_seed(0)
    moved = translate_x(image, torch.tensor([1.0]))  # a third of the width, to either side
    assert {tuple(place) for place in (moved > 0.9).nonzero().tolist()} <= {(0, 0, 4, 4)}
    turned = rotate(image, torch.tensor([1.0]))
    row, column = (turned[0, 0] == turned.max()).nonzero()[0].tolist()
    assert (row, column) in {(2, 1), (6, 1), (3, 1), (5, 1), (2, 2), (6, 2)}  # 30° on a circle of three pixels


def test_the_mixture_stays_in_the_range_and_every_image_has_its_own():
    _, tensor = images()
    same = tensor[:1].repeat(20, 1, 1, 1)
    torch.manual_seed(0)
    mixed = augmix(same, severity=1.0)
    assert mixed.min() >= -1e-6
    assert mixed.max() <= 1 + 1e-6
    assert len({round(float(image.sum()), 3) for image in mixed}) > 15
