from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import jaccard_score, roc_auc_score

from onedomain.components.predictive import Predictive
from onedomain.data.domain import Domain
from onedomain.errors import OnedomainError, UserError
from onedomain.evaluation.calibration import Calibration
from onedomain.evaluation.measures import area_under_risk_coverage, error_auroc, wilson_interval
from onedomain.evaluation.scores import Evaluation, score

LOGITS = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])


def numbered(labels=LABELS, void=None, shape=(1, 1)):
    """Images whose first pixel is their own number, so that a table of logits can play the network."""
    images = np.zeros((len(labels), *shape, 1), np.uint8)
    images[:, 0, 0, 0] = np.arange(len(labels))
    return Domain("numbers", "test", images, labels, ("a", "b", "c"), void=void)


def look_up(images):
    return says(LOGITS[(images[:, 0, 0, 0] * 255).round().long()])


def says(logits):
    return Predictive(logits.double().softmax(1)[None])


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
    scores = score(lambda images: says(logits), numbered(labels, void=9, shape=(2, 2)))
    assert scores.accuracy == pytest.approx(2 / 3)


def test_what_cannot_be_scored_is_said():
    void = numbered(np.full((1, 2, 2), 9), void=9, shape=(2, 2))
    with pytest.raises(UserError, match="every pixel is void"):
        score(lambda images: says(torch.zeros(1, 3, 2, 2)), void)
    with pytest.raises(OnedomainError, match="outputs are not finite"):
        score(lambda images: Predictive([look_up(images).probabilities * float("nan")]), numbered())
    with pytest.raises(UserError, match="every one is seen"):
        Evaluation({"x": score(look_up, numbered())}, unseen=()).average()


def test_progress_is_told_after_every_batch():
    told = []
    score(look_up, numbered(), batch_size=3, each=told.append)
    assert told == [3, 6, 7]


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


def test_brier_against_its_definition():
    probabilities = LOGITS.softmax(1).numpy()
    expected = np.square(probabilities - np.eye(3)[LABELS]).sum(1).mean()
    assert score(look_up, numbered()).brier == pytest.approx(expected, abs=1e-12)


def test_error_detection_against_scikit_learn_and_all_pairs():
    rng = np.random.default_rng(0)
    right, doubt = rng.random(60) < 0.6, rng.integers(0, 8, 60) / 8  # with ties
    assert error_auroc(right, doubt) == pytest.approx(roc_auc_score(~right, doubt))
    pairs = [(a > b) + 0.5 * (a == b) for a in doubt[~right] for b in doubt[right]]
    assert error_auroc(right, doubt) == pytest.approx(np.mean(pairs))
    assert error_auroc(np.ones(3, bool), np.arange(3.0)) is None
    assert error_auroc(np.zeros(3, bool), np.arange(3.0)) is None


def test_risk_and_coverage_against_a_slow_loop():
    rng = np.random.default_rng(1)
    right, doubt = rng.random(50) < 0.7, rng.random(50)
    kept = np.argsort(doubt)
    slow = np.mean([(~right[kept[:n]]).mean() for n in range(1, 51)])
    assert area_under_risk_coverage(right, doubt) == pytest.approx(slow)
    tied = np.zeros(4)  # no answer is more certain than another: at every coverage the error is the mean error
    assert area_under_risk_coverage(np.array([True, False, False, False]), tied) == pytest.approx(0.75)
    assert area_under_risk_coverage(np.array([False, False, False, True]), tied) == pytest.approx(0.75)


def test_the_share_of_flagged_images_follows_the_threshold():
    entropies = look_up(torch.arange(7.0).view(7, 1, 1, 1) / 255).entropy
    middle = float(entropies.sort().values[3])
    scores = score(look_up, numbered(), calibration=Calibration(middle, 7, True))
    assert scores.domain_score == pytest.approx(float(entropies.mean()))
    assert scores.flagged == pytest.approx(3 / 7)
    assert score(look_up, numbered()).flagged is None


def test_rank_correlation_compares_the_order_of_score_and_error():
    base = score(look_up, numbered(), calibration=Calibration(0.5, 7, True))

    def ranked(*pairs):
        scores = {str(n): replace(base, domain_score=s, accuracy=a) for n, (s, a) in enumerate(pairs)}
        return Evaluation(scores, tuple(scores)).rank_correlation()

    assert ranked((1.0, 0.9), (2.0, 0.8), (9.0, 0.1)) == pytest.approx(1.0)
    assert ranked((9.0, 0.9), (2.0, 0.8), (1.0, 0.1)) == pytest.approx(-1.0)
    assert ranked((1.0, 0.9), (2.0, 0.8)) is None
    assert ranked((1.0, 0.9), (1.0, 0.8), (1.0, 0.1)) is None


def test_miou_is_of_one_matrix_over_the_domain_without_void_against_scikit_learn():
    rng = np.random.default_rng(2)
    labels = rng.choice([0, 1, 9], (5, 4, 6), p=[0.5, 0.3, 0.2])  # no pixel of class c
    logits = torch.from_numpy(rng.normal(size=(5, 3, 4, 6)))
    domain = numbered(labels, void=9, shape=(4, 6))
    number = iter(range(5))
    scores = score(lambda images: says(logits[[next(number) for _ in images]]), domain, batch_size=2)
    counted, predicted = labels[labels != 9], logits.argmax(1).numpy()[labels != 9]
    per_class = jaccard_score(counted, predicted, labels=[0, 1], average=None)
    assert scores.iou == pytest.approx({"a": per_class[0], "b": per_class[1], "c": None})
    assert scores.miou == pytest.approx(jaccard_score(counted, predicted, labels=[0, 1], average="macro"))
    right = predicted == counted
    doubt = says(logits).entropy.numpy()[labels != 9]
    assert scores.accuracy == pytest.approx(right.mean())
    assert scores.error_auroc == pytest.approx(error_auroc(right, doubt), abs=1e-3)
    assert scores.aurc == pytest.approx(area_under_risk_coverage(right, doubt), abs=1e-3)


def test_images_with_one_label_have_no_miou():
    scores = score(look_up, numbered())
    assert scores.miou is None
    assert scores.iou == {}


def test_void_may_be_a_class_of_the_network_that_never_counts():
    labels = np.array([[[0, 1], [2, 2]]])  # as in SYNTHIA: class a is void
    logits = torch.zeros(1, 3, 2, 2)
    logits[0, 1, 0, 0] = logits[0, 1, 0, 1] = logits[0, 0, 1, 0] = logits[0, 2, 1, 1] = 5.0
    scores = score(lambda images: says(logits), numbered(labels, void=0, shape=(2, 2)))
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.iou == pytest.approx({"a": None, "b": 1.0, "c": 0.5})
    assert scores.miou == pytest.approx(0.75)


def test_large_images_are_passed_a_few_at_once():
    sizes = []

    def say(images):
        sizes.append(len(images))
        return says(torch.zeros(len(images), 3))

    large = Domain("large", "test", np.zeros((7, 512, 512, 1), np.uint8), LABELS, ("a", "b", "c"))
    score(say, large)
    assert sizes == [4, 3]


def test_images_of_nothing_but_void_change_no_score():
    labels = np.array([[[0, 1], [2, 9]], [[9, 9], [9, 9]]])
    logits = torch.randn(2, 3, 2, 2, generator=torch.Generator().manual_seed(3))
    number = iter((0, 1))
    domain = numbered(labels, void=9, shape=(2, 2))
    both = score(lambda images: says(logits[[next(number)]]), domain, batch_size=1)
    alone = score(lambda images: says(logits[:1]), numbered(labels[:1], void=9, shape=(2, 2)))
    assert (both.miou, both.accuracy, both.ece, both.aurc) == (alone.miou, alone.accuracy, alone.ece, alone.aurc)


def test_entropy_is_the_mean_over_the_answers_that_count():
    """Three pixels: one class is certain, or all are alike; the void one has the largest entropy of all, log 3."""
    logits = torch.tensor([[0.0, 0.0, -90.0], [0.0, 0.0, 0.0], [90.0, 0.0, 0.0]]).T[None, :, None]
    labels = np.array([[[0, 9, 1]]])
    scores = score(lambda images: says(logits), numbered(labels, void=9, shape=(1, 3)))
    assert scores.entropy == pytest.approx(np.log(2) / 2)
    assert scores.error_auroc == 0.0  # the wrong one is the certain one


def test_the_interval_of_the_miou_holds_it():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, (12, 2, 2))
    said = np.where(rng.random(labels.shape) < 0.7, labels, 1 - labels)
    logits = 20 * torch.nn.functional.one_hot(torch.from_numpy(said), 3).movedim(-1, 1).float()
    scores = score(lambda images: says(logits), numbered(labels, shape=(2, 2)))
    assert scores.miou_low < scores.miou < scores.miou_high
