from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from onedomain.data.domain import Domain
from onedomain.errors import OnedomainError, UserError
from onedomain.evaluation import Evaluation, score, wilson_interval

LOGITS = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])


def numbered(labels=LABELS, void=None, shape=(1, 1)):
    """Images whose first pixel is their own number, so that a table of logits can play the network."""
    images = np.zeros((len(labels), *shape, 1), np.uint8)
    images[:, 0, 0, 0] = np.arange(len(labels))
    return Domain("numbers", "test", images, labels, ("a", "b", "c"), void=void)


def look_up(images):
    return LOGITS[(images[:, 0, 0, 0] * 255).round().long()]


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_every_image_counts_whatever_the_batch_size(batch_size):
    scores = score(look_up, numbered(), batch_size=batch_size)
    probabilities = LOGITS.softmax(1).numpy()
    right = probabilities.argmax(1) == LABELS
    assert scores.count == 7
    assert scores.accuracy == pytest.approx(right.mean())
    assert scores.nll == pytest.approx(-np.log(probabilities[np.arange(7), LABELS]).mean())


def test_calibration_against_a_slow_loop_over_bins():
    probabilities = LOGITS.softmax(1).numpy()
    confidence, right = probabilities.max(1), probabilities.argmax(1) == LABELS
    error = 0.0
    for low in np.linspace(0, 1, 16)[:-1]:
        inside = (confidence > low) & (confidence <= low + 1 / 15)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert score(look_up, numbered()).ece == pytest.approx(error, abs=1e-6)


def test_dense_outputs_are_scored_pixel_by_pixel():
    labels = np.array([[[0, 1], [2, 9]]])
    logits = torch.zeros(1, 3, 2, 2)
    logits[0, 0, 0, 0] = logits[0, 2, 0, 1] = logits[0, 2, 1, 0] = 5.0  # right, wrong, right, void
    scores = score(lambda images: logits, numbered(labels, void=9, shape=(2, 2)))
    assert scores.accuracy == pytest.approx(2 / 3)


def test_what_cannot_be_scored_is_said():
    void = numbered(np.full((1, 2, 2), 9), void=9, shape=(2, 2))
    with pytest.raises(UserError, match="every pixel is void"):
        score(lambda images: torch.zeros(1, 3, 2, 2), void)
    with pytest.raises(OnedomainError, match="outputs are not finite"):
        score(lambda images: look_up(images) * float("nan"), numbered())
    with pytest.raises(UserError, match="every one is seen"):
        Evaluation({"x": score(look_up, numbered())}, unseen=()).average()


def test_progress_is_told_of_every_image():
    told = []
    score(look_up, numbered(), batch_size=3, each=told.append)
    assert told == [3, 3, 1]


@pytest.mark.parametrize(("right", "count"), [(0, 10), (5, 100), (99, 100), (10, 10)])
def test_the_interval_is_wilsons(right, count):
    expected = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right / count, count) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_average_is_over_unseen_domains():
    one, two = score(look_up, numbered()), score(look_up, numbered(LABELS[::-1].copy()))
    evaluation = Evaluation({"source": one, "x": two}, unseen=("x",))
    assert evaluation.average() == two.accuracy
    assert evaluation.average("nll") == two.nll
    assert list(evaluation) == ["source", "x"]
