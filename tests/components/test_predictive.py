from __future__ import annotations

import pytest
import torch

from onedomain.components.predictive import divergence_from_mean


def test_the_sum_of_divergences_against_a_loop():
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = logits.softmax(2)
    mean = p.mean(0)
    for sample in range(4):
        slow = sum((p[v, sample] * (p[v, sample] / mean[sample]).log()).sum() for v in range(3))
        assert divergence_from_mean(logits)[sample].item() == pytest.approx(slow.item(), abs=1e-12)


def test_two_opposite_certainties_are_log_two_apart():
    logits = torch.tensor([[[100.0, 0.0]], [[0.0, 100.0]]])
    assert (divergence_from_mean(logits) / 2).item() == pytest.approx(0.6931, abs=1e-4)  # Jensen–Shannon


def test_dense_outputs_have_a_value_for_each_pixel():
    logits = torch.randn(2, 3, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    by_pixel = divergence_from_mean(logits.permute(0, 1, 3, 4, 2).reshape(2, -1, 4))
    assert torch.allclose(divergence_from_mean(logits), by_pixel.view(3, 5, 6), atol=1e-6)
