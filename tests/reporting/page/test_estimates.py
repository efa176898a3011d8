from __future__ import annotations

import math

import pytest
from scipy.stats import ttest_ind_from_stats

from onedomain.reporting.estimates import Estimate, margin, over_domains, too_close, variance_of_images


def test_an_average_is_taken_run_by_run():
    easy, hard = Estimate((0.8, 0.9), 0.0004), Estimate((0.2, 0.4), 0.0012)
    both = over_domains([easy, hard])
    assert both.values == pytest.approx((0.5, 0.65))
    assert both.mean == pytest.approx(0.575)
    assert both.deviation == pytest.approx(0.15 / math.sqrt(2))
    assert both.of_images == pytest.approx(0.0004)  # (0.0004 + 0.0012) / 2²


def test_one_seed_has_no_deviation_and_its_margin_is_that_of_the_images():
    low, high = Estimate((0.40,), variance_of_images(0.38, 0.42)), Estimate((0.43,), variance_of_images(0.41, 0.45))
    assert low.deviation is None
    assert margin(low, high) == pytest.approx(math.sqrt(0.02**2 + 0.02**2))
    assert not too_close(low, high)
    assert too_close(low, Estimate((0.42,), high.of_images))


def test_over_seeds_the_margin_is_welchs():
    first, second = Estimate((0.50, 0.52, 0.51), 0.0), Estimate((0.47, 0.49, 0.45), 0.0)
    edge = margin(first, second)  # a difference as large as this has a p-value of 5%
    assert ttest_ind_from_stats(0.47 + edge, 0.01, 3, 0.47, 0.02, 3, equal_var=False).pvalue == pytest.approx(0.05)
    assert too_close(first, second)
    assert not too_close(first, Estimate((0.43, 0.45, 0.41), 0.0))


def test_images_widen_the_margin_of_seeds_that_happen_to_agree():
    alike = Estimate((0.5, 0.5), 0.0001), Estimate((0.52, 0.52), 0.0001)
    assert margin(*alike) == pytest.approx(1.959964 * math.sqrt(0.0002))
    assert too_close(*alike)
