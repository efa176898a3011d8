from __future__ import annotations

from itertools import permutations

import pytest
import torch

from onedomain.components.transport import wasserstein


def test_it_is_the_cheapest_of_all_assignments():
    torch.manual_seed(0)
    a, b = torch.randn(6, 2, 3), torch.randn(6, 2, 3)
    cheapest = min(
        sum(float((a[i] - b[j]).double().square().mean()) for i, j in enumerate(order)) / 6
        for order in permutations(range(6))
    )
    assert wasserstein(a, b) == pytest.approx(cheapest)


def test_a_shift_costs_its_square_and_the_order_of_a_sample_nothing():
    a = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    assert wasserstein(a, a.flip(0)) == pytest.approx(0, abs=1e-12)
    assert wasserstein(a, a + 3) == pytest.approx(9, rel=1e-6)
