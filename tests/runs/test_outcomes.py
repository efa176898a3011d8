from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

import onedomain as od
from onedomain.components.compact import as_bytes
from onedomain.components.predictive import Predictive
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.evaluation.calibration import Calibration
from onedomain.evaluation.gathering import Gathering
from onedomain.evaluation.scores import score
from onedomain.runs.outcomes import file_name, load_outcome, read_outcomes, save_outcome
from tests.conftest import TinyNet, make_tiny
from tests.evaluation.test_scores import LABELS, LOGITS, look_up, numbered

SAMPLED = ("sample_probabilities", "sample_embedding", "sample_images")


def with_embedding(images):
    embedding = (images[:, :, 0] * 255).round() + torch.tensor([0.0, 0.5])
    return Predictive([look_up(images).probabilities], embedding=embedding)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_answer_is_kept_in_the_order_of_the_domain(batch_size):
    gathering = Gathering(numbered(), unseen=True)
    scores = score(with_embedding, numbered(), calibration=Calibration(0.5, 7, True), batch_size=batch_size,
                   gathering=gathering)  # fmt: skip
    outcome = gathering.outcome()
    probabilities = LOGITS.softmax(1).numpy()
    assert np.array_equal(outcome.labels, LABELS)
    assert np.array_equal(outcome.predicted, probabilities.argmax(1))
    assert np.allclose(outcome.confidence, probabilities.max(1))
    assert np.allclose(outcome.uncertainty, -(probabilities * np.log(probabilities)).sum(1))
    assert np.allclose(outcome.domain_score, outcome.uncertainty)
    assert outcome.right.mean() == pytest.approx(scores.accuracy)
    assert sorted(outcome.sample) == list(range(7))
    assert np.array_equal(outcome.sample_embedding[:, 0], outcome.sample)
    assert np.allclose(outcome.sample_probabilities, probabilities[outcome.sample])
    assert np.array_equal(outcome.sample_images[:, 0, 0, 0], outcome.sample)
    assert (outcome.domain, outcome.split, outcome.unseen, outcome.count) == ("numbers", "test", True, 7)


def test_of_many_images_a_fixed_sample_is_kept():
    count = 700
    images = np.zeros((count, 2, 2, 1), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 1, 0] = np.divmod(np.arange(count), 256)
    domain = Domain("many", "test", images, np.arange(count) % 3, ("a", "b", "c"))

    def say(batch):
        number = (batch[:, 0, 0, 0] * 255).round() * 256 + (batch[:, 0, 0, 1] * 255).round()
        return Predictive(torch.full((1, len(batch), 3), 1 / 3), embedding=number[:, None])

    outcomes = []
    for batch_size in (64, 250):
        gathering = Gathering(domain, unseen=False)
        score(say, domain, batch_size=batch_size, gathering=gathering)
        outcomes.append(gathering.outcome())
    one, other = outcomes
    assert len(one.sample) == 200
    assert len(set(one.sample)) == 200
    assert np.array_equal(one.sample_embedding[:, 0], one.sample)
    pixels = one.sample_images[:, 0, :, 0].astype(int)
    assert np.array_equal(pixels[:, 0] * 256 + pixels[:, 1], one.sample[:40])
    for name in ("sample", *SAMPLED):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_labels_of_pixels_are_kept_as_means_over_an_image():
    labels = np.array([[[0, 1], [2, 9]], [[9, 9], [9, 9]]])
    logits = torch.zeros(2, 3, 2, 2)
    logits[0, 0, 0, 0] = logits[0, 2, 0, 1] = logits[0, 2, 1, 0] = 5.0  # right, wrong, right, void
    domain = numbered(labels, void=9, shape=(2, 2))
    gathering = Gathering(domain, unseen=True)
    score(lambda images: Predictive(logits.double().softmax(1)[None]), domain, gathering=gathering)
    outcome = gathering.outcome()
    assert outcome.dense
    assert outcome.labels is None
    assert outcome.right[0] == pytest.approx(2 / 3)
    assert np.isnan(outcome.right[1])
    assert outcome.confidence[0] == pytest.approx(np.exp(5) / (np.exp(5) + 2))
    assert outcome.sample_probabilities.shape == (2, 3)


def test_of_a_few_images_every_pixel_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (9, 4, 6))
    labels[labels == 3] = 255
    images = rng.integers(0, 256, (9, 4, 6, 3), dtype=np.uint8)
    images[:, 0, 0, 0] = np.arange(9)
    logits = torch.from_numpy(rng.normal(size=(9, 3, 4, 6)))
    domain = Domain("dense", "test", images, labels, ("a", "b", "c"), void=255)

    def say(batch):
        return Predictive([logits[(batch[:, 0, 0, 0] * 255).round().long()].softmax(1)])

    gathering = Gathering(domain, unseen=True)
    score(say, domain, batch_size=4, gathering=gathering)
    outcome = load_outcome(save_outcome(gathering.outcome(), tmp_path, "b"))
    shown = outcome.sample[:6]
    assert outcome.void == 255
    assert np.array_equal(outcome.mask_images, images[shown])
    assert np.array_equal(outcome.mask_truth, labels[shown])
    assert np.array_equal(outcome.mask_predicted, logits.argmax(1).numpy()[shown])
    entropy = Predictive([logits.softmax(1)]).entropy.numpy()
    assert np.allclose(outcome.mask_uncertainty, entropy[shown], atol=1e-3)
    assert gathering.outcome().mask_images.shape == (6, 4, 6, 3)


@pytest.fixture
def run(tiny, tmp_path):
    torch.manual_seed(0)
    return od.fit("erm", tiny, network=TinyNet(), embedding="pool", steps=2, out=tmp_path / "a", progress=False)


def test_the_records_of_a_run_bring_its_answers(run, tiny):
    evaluation = run.evaluate({"same": tiny, "Köln/Nacht": make_tiny(seed=1)}, seen=["same"])
    run.write_records(evaluation)
    folder = run.folder / "outcomes" / "own"
    assert {path.name for path in folder.iterdir()} == {"same.safetensors", "k-ln-nacht-68212e4b.safetensors"}
    outcomes = read_outcomes(run.folder, "own")
    assert set(outcomes) == {"same", "Köln/Nacht"}
    assert not outcomes["same"].unseen
    assert outcomes["same"].fingerprint == tiny.fingerprint
    assert outcomes["same"].classes == ("left", "middle", "right")
    assert outcomes["same"].benchmark is None
    assert outcomes["Köln/Nacht"].right.mean() == pytest.approx(evaluation["Köln/Nacht"].accuracy)
    predictions = run.predict(tiny.images)
    assert np.array_equal(outcomes["same"].predicted, predictions.labels)
    assert np.allclose(outcomes["same"].uncertainty, predictions.uncertainty)
    run.network.module.eval()
    with torch.no_grad():
        z = run.network.embed(tiny.batch(outcomes["same"].sample).images)[1]
    assert np.allclose(outcomes["same"].sample_embedding, z.flatten(1), atol=1e-2)
    assert np.array_equal(outcomes["same"].sample_images, tiny.images[outcomes["same"].sample[:40]])
    assert load_file(folder / "same.safetensors")["labels"].dtype == np.uint8
    run.write_records(run.evaluate({"same": make_tiny(seed=2)}), "bench")
    assert read_outcomes(run.folder, "bench")["same"].benchmark == "bench"
    assert read_outcomes(run.folder, "own")["same"].fingerprint == tiny.fingerprint


def test_a_network_without_a_named_embedding_is_scored_without_one(tiny):
    run = od.fit("erm", tiny, network=nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), steps=1, progress=False)
    assert run.evaluate({"same": tiny}).outcomes["same"].sample_embedding is None


def test_large_images_are_averaged_down():
    images = torch.zeros(2, 3, 192, 384)
    images[:, :, :, ::2] = 1.0
    small = as_bytes(images, (0.0, 1.0))
    assert small.shape == (2, 48, 96, 3)
    assert (small == 128).all()
    assert as_bytes(torch.tensor([-3.0, 0.0, 1.0, 9.0]).view(1, 1, 2, 2), (-1.0, 1.0)).ravel().tolist() == [
        0, 128, 255, 255,
    ]  # fmt: skip


def test_names_become_files_that_stay_apart():
    names = ["night", "Night", "a/b", "a-b", "..", ".", "", "ü" * 300, "ö" * 300, "con trast"]
    files = [file_name(name) for name in names]
    assert files[0] == "night"
    assert len({file.lower() for file in files}) == len(names)
    assert all(file and len(file) < 100 and "/" not in file and not file.startswith(".") for file in files)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="x.safetensors: cannot be understood"):
        load_outcome(tmp_path / "x.safetensors")
