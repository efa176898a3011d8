from __future__ import annotations

import math
import weakref

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.components.predictive import Predictive
from onedomain.evaluation.calibration import LEADING, Calibration, calibrate
from tests.conftest import TinyNet, make_tiny


def test_entropy_and_mutual_information_by_hand():
    draws = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])  # two draws, two samples
    said = Predictive(draws)
    assert said.probabilities.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert said.entropy.tolist() == pytest.approx([math.log(2)] * 2)
    # The first sample is sure each time, of something else; the second one is unsure each time, of the same.
    assert said.mutual_information.tolist() == pytest.approx([math.log(2), 0.0])


def test_a_plain_prediction_stands_beside_the_draws():
    draws = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    said = Predictive(draws, plain=torch.tensor([[0.75, 0.25]]))
    assert said.probabilities.tolist() == [[0.75, 0.25]]
    assert said.mean.tolist() == [[0.5, 0.5]]
    assert said.entropy.item() == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert said.mutual_information.item() == pytest.approx(math.log(2))  # of the draws alone
    assert said.predictive_entropy.item() == pytest.approx(math.log(2))  # of their mean


def test_dense_predictions_have_maps():
    said = Predictive(torch.rand(4, 2, 3, 5, 6).softmax(2))
    assert said.entropy.shape == said.mutual_information.shape == (2, 5, 6)


def test_draws_are_taken_up_one_by_one_and_none_is_kept():
    draws = torch.rand(6, 2, 3, 4, 4).softmax(2)
    alive = []

    def one_by_one():
        for draw in draws:
            copy = draw.clone()
            alive.append(weakref.ref(copy))
            yield copy
            del copy
            assert sum(each() is not None for each in alive) <= 2

    said = Predictive(one_by_one())
    assert torch.allclose(said.probabilities, draws.mean(0))
    entropies = -(draws * draws.log()).sum(2)
    assert torch.allclose(said.mutual_information, said.entropy - entropies.mean(0), atol=1e-6)
    assert not any(each() is not None for each in alive)


def test_parts_are_joined_as_if_they_had_been_one():
    draws = torch.rand(3, 5, 4).softmax(2)
    statistics = torch.rand(5, 2)
    plain = torch.rand(5, 4).softmax(1)
    parts = [Predictive(draws[:, part], statistics[part], plain=plain[part]) for part in (slice(0, 2), slice(2, 5))]
    joined, whole = Predictive.joined(parts), Predictive(draws, statistics, plain=plain)
    for name in ("probabilities", "mean", "entropy", "mutual_information", "statistics"):
        assert torch.equal(getattr(joined, name), getattr(whole, name))
    assert joined.embedding is None


def test_a_model_without_statistics_is_not_asked_about_the_whole_source():
    asked = []

    def source():
        for _ in range(10):
            asked.append(1)
            yield Predictive(torch.full((1, 4, 2), 0.5))

    calibrate(source(), [Predictive(torch.full((1, 4, 2), 0.5))], True)
    assert len(asked) == 1


def said(statistics):
    return Predictive(torch.full((1, len(statistics), 2), 0.5), statistics)


def test_one_in_twenty_of_the_source_is_flagged_and_what_lies_far_is():
    generator = torch.Generator().manual_seed(0)
    spread = torch.tensor([1.0, 10.0, 0.1])
    source, held_out, later = (spread * torch.randn(4000, 3, generator=generator) for _ in range(3))
    calibration = calibrate([said(source)], [said(held_out)], True)
    scores = calibration.score(said(later))
    assert float((scores > calibration.threshold).double().mean()) == pytest.approx(0.05, abs=0.01)
    assert float(scores.square().mean()) == pytest.approx(1.0, abs=0.05)  # Mahalanobis: every direction counts alike
    away = calibration.score(said(later + torch.tensor([0.0, 0.0, 1.0])))  # ten deviations of the narrow direction
    assert float((away > calibration.threshold).double().mean()) == 1.0


def test_the_distance_is_mahalanobis():
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(50_000, 2, generator=generator, dtype=torch.float64) @ torch.tensor(
        [[2.0, 1.0], [0.0, 1.0]], dtype=torch.float64
    )
    calibration = calibrate([said(values)], [said(values)], True)
    point = torch.tensor([[3.0, -1.0]], dtype=torch.float64)
    centred = (point - values.mean(0)).numpy()[0]
    expected = math.sqrt(centred @ np.linalg.inv(np.cov(values.numpy().T)) @ centred / 2)
    assert calibration.score(said(point)).item() == pytest.approx(expected, rel=2e-3)


def test_only_the_leading_directions_count():
    generator = torch.Generator().manual_seed(2)
    common = torch.randn(3000, 1, generator=generator)
    values = torch.cat([torch.randn(3000, LEADING - 1, generator=generator), common.expand(-1, 5)], 1)
    values[:, -5:] += 1e-2 * torch.randn(3000, 5, generator=generator)  # five columns that are nearly one
    calibration = calibrate([said(values)], [said(values)], True)
    assert calibration.axes.shape == (LEADING + 4, LEADING)
    together, apart = torch.zeros(2, LEADING + 4)
    together[-5:] = 6.0
    apart[-5], apart[-4] = 3.0, -3.0  # hundreds of deviations, where the source hardly varies
    assert calibration.score(said(together[None])).item() > calibration.threshold
    assert calibration.score(said(apart[None])).item() < 0.2


def test_constant_statistics_do_not_break_it():
    calibration = calibrate([said(torch.ones(20, 3))], [said(torch.ones(5, 3))], True)
    assert calibration.score(said(torch.ones(2, 3))).tolist() == [0.0, 0.0]
    assert calibration.score(said(torch.zeros(1, 3))).item() > calibration.threshold


def test_a_calibration_of_another_version_is_refused_unless_it_has_nothing_but_a_threshold():
    state = {"threshold": 0.3, "images": 7, "held_out": True, "mean": None, "precision": None}
    assert Calibration.from_state(state) == Calibration(0.3, 7, True)
    with pytest.raises(od.UserError, match=r"calibration: of another version \(precision\)"):
        Calibration.from_state({**state, "mean": torch.zeros(2), "precision": torch.eye(2)})


def test_models_without_phi_are_scored_by_entropy():
    sure, unsure = torch.tensor([[[0.99, 0.01]]]), torch.tensor([[[0.5, 0.5]]])
    calibration = calibrate([], [Predictive(sure.repeat(1, 100, 1))], True)
    assert calibration.mean is None
    assert calibration.score(Predictive(unsure)).item() == pytest.approx(math.log(2))
    assert calibration.score(Predictive(unsure)).item() > calibration.threshold


def test_five_percent_of_the_source_are_set_aside_and_never_trained_on(tmp_path):
    tiny = make_tiny(400)
    run = od.fit("erm", tiny, network=TinyNet(), steps=2, out=tmp_path / "a", progress=False)
    assert run.manifest.source.count == 380
    assert run.calibration.held_out
    assert run.calibration.images == 20
    again = od.fit("erm", tiny, network=TinyNet(), steps=2, progress=False)
    assert again.manifest.source.fingerprint == run.manifest.source.fingerprint
    few = od.fit("erm", make_tiny(60), network=TinyNet(), steps=2, progress=False)
    assert few.manifest.source.count == 60
    assert not few.calibration.held_out


def test_held_out_images_can_be_given(tiny):
    run = od.fit("erm", tiny, network=TinyNet(), steps=2, held_out=make_tiny(30, seed=5), progress=False)
    assert run.calibration.images == 30
    assert run.manifest.source.count == 60
    with pytest.raises(od.UserError, match="held_out: images are"):
        od.fit("erm", tiny, network=TinyNet(), held_out=(np.zeros((4, 9, 9, 1), np.uint8), [0, 1, 2, 0]), steps=2)


def test_a_loaded_run_says_the_same(tmp_path):
    tiny = make_tiny(300)
    torch.manual_seed(0)
    run = od.fit("erm", tiny, network=TinyNet(), steps=60, out=tmp_path / "a", progress=False)
    noise = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), dtype=np.uint8)
    before = run.predict(noise)
    after = od.load(tmp_path / "a", network=TinyNet()).predict(noise)
    assert np.array_equal(before.out_of_domain, after.out_of_domain)
    assert np.array_equal(before.domain_score, after.domain_score)
    assert before.out_of_domain.dtype == bool
    assert (before.mutual_information == 0).all()


def test_classes_that_come_one_after_another_do_not_mislead_the_calibration(monkeypatch):
    monkeypatch.setattr("onedomain.training.begin.MOST_IMAGES", 30)
    tiny = make_tiny(300)
    by_class = tiny.subset(np.argsort(tiny.labels, kind="stable"))
    looked_at = []
    real = od.ERM.predictive

    def kept(self, images, draws=None):
        looked_at.append(images)
        return real(self, images, draws)

    monkeypatch.setattr(od.ERM, "predictive", kept)
    od.fit("erm", by_class, network=TinyNet(), steps=1, held_out=by_class, progress=False)
    bright = torch.cat(looked_at)[:, 0].mean(1)  # by column: which third is bright
    assert {int(third) for third in bright.view(len(bright), 8)[:, [0, 3, 6]].argmax(1)} == {0, 1, 2}


def test_calibrating_leaves_the_callers_random_numbers_alone(tiny):
    torch.manual_seed(0)
    expected = torch.rand(1)
    network = TinyNet()
    torch.manual_seed(0)
    od.fit("erm", tiny, network=network, steps=1, progress=False)
    assert torch.equal(torch.rand(1), expected)
