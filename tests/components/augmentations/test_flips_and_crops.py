from __future__ import annotations

import numpy as np
import torch

from onedomain.components.augmentations.flips_and_crops import flipped_and_cropped
from onedomain.data.domain import Batch


def test_shifts_go_up_to_an_eighth_and_reflect_the_rim():
    torch.manual_seed(0)
    coordinates = torch.stack(torch.meshgrid(torch.arange(32.0), torch.arange(16.0), indexing="ij"))
    images, labels = flipped_and_cropped(Batch(coordinates.expand(400, 2, 32, 16), torch.arange(400)))
    assert torch.equal(labels, torch.arange(400))
    downs, rights, mirrors = set(), set(), set()
    for rows, columns in zip(images[:, 0, :, 0].numpy(), images[:, 1, 0].numpy(), strict=True):
        mirrored = columns[7] > columns[8]
        columns = 15 - columns if mirrored else columns
        down, right = int(rows[15]) - 15, int(columns[7]) - 7
        np.testing.assert_array_equal(rows, 31 - np.abs(31 - np.abs(np.arange(32) + down)))
        np.testing.assert_array_equal(columns, 15 - np.abs(15 - np.abs(np.arange(16) + right)))
        downs.add(down)
        rights.add(right)
        mirrors.add(bool(mirrored))
    assert downs == set(range(-4, 5))
    assert rights == set(range(-2, 3))
    assert mirrors == {False, True}


def test_half_of_the_images_are_mirrored():
    torch.manual_seed(1)
    images = torch.rand(64, 1, 7, 7)  # too small to be shifted
    changed, _ = flipped_and_cropped(Batch(images, torch.zeros(64)))
    as_it_is = [torch.equal(new, old) for new, old in zip(changed, images, strict=True)]
    mirrored = [torch.equal(new, old.flip(2)) for new, old in zip(changed, images, strict=True)]
    assert [a or b for a, b in zip(as_it_is, mirrored, strict=True)] == [True] * 64
    assert 16 < sum(mirrored) < 48


def test_labels_of_pixels_move_with_their_images():
    torch.manual_seed(2)
    labels = torch.randint(0, 9, (20, 16, 24))
    images, moved = flipped_and_cropped(Batch(labels[:, None].float(), labels))
    assert torch.equal(images[:, 0].long(), moved)
    assert not torch.equal(moved, labels)


def test_batches_stay_in_the_channels_last_layout():
    images = torch.rand(4, 3, 16, 16).contiguous(memory_format=torch.channels_last)
    changed, _ = flipped_and_cropped(Batch(images, torch.zeros(4)))
    assert changed.is_contiguous(memory_format=torch.channels_last)
