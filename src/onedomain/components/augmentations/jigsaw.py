"""Images cut into tiles and put together in another order."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from onedomain.data.domain import IntArray

GRID = 3
TILES = GRID * GRID


@lru_cache(maxsize=4)
def distant_permutations(count: int) -> IntArray:
    """`count` orders of nine tiles, far from each other: the first leaves all in place, each next one is among those
    that differ most, in Hamming distance, from the nearest one chosen before. Always the same ones.
    """
    every = np.array(list(permutations(range(TILES))), dtype=np.int8)
    chosen = [0]
    nearest = np.full(len(every), TILES + 1)
    for _ in range(count - 1):
        nearest = np.minimum(nearest, (every != every[chosen[-1]]).sum(1))
        chosen.append(int(nearest.argmax()))
    return every[chosen].astype(np.int64)


def shuffle_tiles(images: Tensor, orders: Tensor) -> Tensor:
    """Each image's tiles in the order given for it: place t shows what was at place orders[t].

    Images (N, C, H, W), at least 3×3; orders (N, 9), each row a permutation of 0 … 8. The tiles are those of the
    largest area in the middle that nine equal ones fill; the rim stays as it is.
    """
    n, c, height, width = images.shape
    h, w = height // GRID, width // GRID
    top, left = (height - GRID * h) // 2, (width - GRID * w) // 2
    area = images[:, :, top : top + GRID * h, left : left + GRID * w]
    tiles = area.reshape(n, c, GRID, h, GRID, w).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # (N, 9, C, h, w)
    moved = tiles[torch.arange(n, device=images.device)[:, None], orders.to(images.device)]
    shuffled = images.clone()
    shuffled[:, :, top : top + GRID * h, left : left + GRID * w] = (
        moved.unflatten(1, (GRID, GRID)).permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)  # type: ignore[no-untyped-call]
    )
    return shuffled
