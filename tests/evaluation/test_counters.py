from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import jaccard_score
from torchmetrics.functional.classification import multiclass_calibration_error

from onedomain.evaluation.counters import ConfidenceBins, DoubtHistogram, Overlaps
from onedomain.evaluation.measures import area_under_risk_coverage, error_auroc


def in_parts(tally, *columns, parts=3):
    for chunk in zip(*(column.chunk(parts) for column in columns), strict=True):
        tally.add(*chunk)
    return tally


def test_the_calibration_error_is_that_of_torchmetrics():
    generator = torch.Generator().manual_seed(0)
    probabilities = (3 * torch.randn(500, 4, generator=generator)).softmax(1).double()
    labels = torch.randint(4, (500,), generator=generator)
    confidence, predicted = probabilities.max(1)
    bins = in_parts(ConfidenceBins(15), confidence, predicted == labels)
    expected = multiclass_calibration_error(probabilities.float(), labels, 4, n_bins=15, norm="l1")
    assert bins.error() == pytest.approx(float(expected), abs=1e-6)


def test_full_confidence_has_a_bin():
    bins = ConfidenceBins(15)
    bins.add(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64), torch.tensor([True, False, False]))
    assert bins.error() == pytest.approx((abs(1 - 2) + 0) / 3)


def answers(count, seed=0):
    """Doubts as entropies are: many near 0, over ten orders of magnitude; wrong ones are larger."""
    rng = np.random.default_rng(seed)
    right = rng.random(count) < 0.8
    doubt = np.minimum(10 ** rng.uniform(-10, 0.3, count) * np.where(right, 1, 20), 2.5)
    return right, doubt


def test_the_histogram_scores_like_all_answers_sorted():
    right, doubt = answers(20_000)
    histogram = in_parts(DoubtHistogram(), torch.from_numpy(right), torch.from_numpy(doubt))
    assert histogram.error_auroc() == pytest.approx(error_auroc(right, doubt), abs=1e-5)
    assert histogram.aurc() == pytest.approx(area_under_risk_coverage(right, doubt), abs=1e-5)


def test_ties_are_exact():
    right = np.array([True, False, True, True, False, False])
    doubt = np.array([0.5, 0.5, 0.25, 0.0, 1.0, 0.5])
    histogram = DoubtHistogram()
    histogram.add(torch.from_numpy(right), torch.from_numpy(doubt))
    assert histogram.error_auroc() == pytest.approx(error_auroc(right, doubt), abs=1e-12)
    assert histogram.aurc() == pytest.approx(area_under_risk_coverage(right, doubt), abs=1e-12)


def test_doubts_apart_by_more_than_a_part_in_two_thousand_are_told_apart():
    for scale in (1e-6, 1.0):
        histogram = DoubtHistogram()
        histogram.add(torch.tensor([False, True]), torch.tensor([1.001, 1.0]) * scale)
        assert histogram.error_auroc() == 1.0


def test_a_negative_zero_is_no_doubt():
    histogram = DoubtHistogram()
    histogram.add(torch.tensor([True, False]), torch.tensor([-0.0, 0.0]))
    assert histogram.error_auroc() == 0.5


def test_one_kind_of_answer_has_no_auroc():
    histogram = DoubtHistogram()
    histogram.add(torch.tensor([True, True]), torch.tensor([0.1, 0.2]))
    assert histogram.error_auroc() is None
    assert histogram.aurc() == 0.0


def test_intersection_over_union_against_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 3000)
    predicted = np.where(rng.random(3000) < 0.6, labels, rng.integers(0, 6, 3000))  # class 5 is predicted, never true
    overlaps = Overlaps(7)
    for part in np.split(np.arange(3000), [700, 1900]):
        overlaps.add(torch.from_numpy(labels[part])[None], torch.from_numpy(predicted[part])[None], void=None)
    found = overlaps.intersection_over_union()
    assert found[:5] == pytest.approx(jaccard_score(labels, predicted, labels=range(5), average=None))
    assert found[5:] == [None, None]


def test_it_is_one_matrix_and_not_a_mean_over_parts():
    overlaps = Overlaps(2)
    overlaps.add(torch.tensor([[0, 0, 0, 1]]), torch.tensor([[0, 0, 0, 0]]), void=None)
    overlaps.add(torch.tensor([[1, 1, 1, 1]]), torch.tensor([[1, 1, 1, 0]]), void=None)
    assert overlaps.intersection_over_union() == pytest.approx([3 / 5, 3 / 5])


def test_the_interval_of_the_miou_is_that_of_a_slow_bootstrap():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (40, 6, 5))  # 3 is void
    share = np.linspace(0.2, 0.9, 40)[:, None, None]  # some images are much better than others
    predicted = np.where(rng.random(labels.shape) < share, labels.clip(max=2), rng.integers(0, 3, labels.shape))
    overlaps = Overlaps(3 + 1)
    for part in range(0, 40, 16):
        chosen = slice(part, part + 16)
        overlaps.add(torch.from_numpy(labels[chosen]), torch.from_numpy(predicted[chosen]), void=3)
    low, high = overlaps.interval()
    assert (low, high) == overlaps.interval()
    slow = []
    for _ in range(1000):
        drawn = rng.integers(0, 40, 40)
        true, said = labels[drawn].ravel(), predicted[drawn].ravel()
        slow.append(jaccard_score(true[true < 3], said[true < 3], labels=[0, 1, 2], average="macro"))
    assert [low, high] == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=0.01)
    assert high - low > 0.05


def test_the_interval_of_one_image_is_its_miou():
    """In single precision 1/3 would lie outside of it, and a figure would have whiskers of negative length."""
    labels, predicted = torch.tensor([[[0, 0, 0, 1]]]), torch.tensor([[[0, 1, 1, 1]]])
    overlaps = Overlaps(2)
    overlaps.add(labels, predicted, void=None)
    miou = np.mean(overlaps.intersection_over_union())
    assert miou == pytest.approx(1 / 3, abs=1e-15)
    assert overlaps.interval() == pytest.approx((miou, miou), abs=1e-15)


def test_a_draw_without_a_class_is_a_mean_over_the_others():
    overlaps = Overlaps(2)
    labels = torch.tensor([[[0, 0]], [[1, 1]]])
    overlaps.add(labels, torch.tensor([[[0, 0]], [[1, 0]]]), void=None)
    low, high = overlaps.interval()  # only the first image: 1; only the second: 1/2
    assert (low, high) == (0.5, 1.0)
