from __future__ import annotations

import numpy as np
import pytest
import torch

from onedomain.components.augmentations.jigsaw import distant_permutations, shuffle_tiles


def test_permutations_are_distinct_and_far_apart():
    orders = distant_permutations(31)
    assert orders.shape == (31, 9)
    assert np.array_equal(orders[0], np.arange(9))
    assert all(sorted(order) == list(range(9)) for order in orders.tolist())
    assert len({tuple(order) for order in orders.tolist()}) == 31
    distances = (orders[:, None] != orders[None]).sum(2)
    assert distances[~np.eye(31, dtype=bool)].min() >= 7
    assert np.array_equal(orders, distant_permutations(31))


@pytest.mark.parametrize(("height", "width"), [(9, 9), (32, 32), (11, 16), (3, 4)])
def test_tiles_move_as_told_and_the_inverse_restores_the_image(height, width):
    images = torch.arange(4 * 2 * height * width, dtype=torch.float32).view(4, 2, height, width)
    orders = torch.from_numpy(distant_permutations(31))[[0, 3, 7, 30]]
    moved = shuffle_tiles(images, orders)
    assert torch.equal(moved[0], images[0])
    h, w = height // 3, width // 3
    top, left = (height - 3 * h) // 2, (width - 3 * w) // 2

    def tile(image, place):
        row, column = divmod(place, 3)
        return image[:, top + row * h : top + (row + 1) * h, left + column * w : left + (column + 1) * w]

    for image, changed, order in zip(images, moved, orders, strict=True):
        for place in range(9):
            assert torch.equal(tile(changed, place), tile(image, int(order[place])))
    assert torch.equal(shuffle_tiles(moved, orders.argsort(1)), images)
