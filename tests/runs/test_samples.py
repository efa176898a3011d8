from __future__ import annotations

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.components.augmented_domains import Augmentation
from onedomain.data.arrays import save_arrays
from onedomain.errors import UserError
from onedomain.runs.samples import AugmentedSample, mosaic, read_samples
from tests.conftest import TinyNet, make_tiny

CPU = torch.device("cpu")
QUICK = {"steps": 6, "batch_size": 12, "ascent_steps": 2}


def halved(batch):
    return batch.images / 2


def test_a_complete_domain_leaves_pairs(tmp_path):
    tiny = make_tiny(60)
    augmentation = Augmentation(tiny, 50, (0,), tmp_path / "augmented")
    for done in augmentation.make(halved, CPU):
        assert done == 1.0 or not read_samples(tmp_path)
    list(augmentation.make(halved, CPU))
    first, second = read_samples(tmp_path)
    assert (first.domain, second.domain) == ("augmented-1", "augmented-2")
    chosen = np.random.default_rng([0, 1]).permutation(60)[:40]
    assert np.array_equal(first.originals, tiny.images[chosen])
    assert len(first.labels) == 50
    assert np.array_equal(first.labels[:40], tiny.labels[chosen])
    assert np.abs(first.images.astype(int) - first.originals / 2.0).max() <= 1
    assert not first.origins.any()
    again = np.random.default_rng([0, 2]).permutation(110)[:40]
    assert np.array_equal(second.origins, (again >= 60).astype(int))
    assert np.array_equal(second.originals[again < 60], tiny.images[again[again < 60]])


def test_one_that_was_cut_off_leaves_the_same_pairs(tmp_path):
    tiny = make_tiny(240)
    whole = Augmentation(tiny, 240, (0,), tmp_path / "whole" / "augmented")
    list(whole.make(halved, CPU))
    cut = Augmentation(tiny, 240, (0,), tmp_path / "cut" / "augmented")
    making = cut.make(halved, CPU)
    next(making)
    state = cut.state_dict()
    next(making)
    resumed = Augmentation(tiny, 240, (0,), tmp_path / "cut" / "augmented")
    resumed.load_state_dict(state)
    list(resumed.make(halved, CPU))
    name = "augmented/augmented-1.sample.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("method", "made", "where"),
    [
        (od.SDG(**QUICK, warm_up=1, domain_every=2, domain_size=30, domains=2, beta=0.0), 2, "augmented"),
        (od.GUD(**QUICK, rounds=1, round_every=2, round_size=30), 1, "augmented"),
        (od.GUD(**QUICK, rounds=1, round_every=2, round_size=30, gammas="1,2"), 1, "augmented-1"),
        (od.ERM(steps=2), 0, ""),
    ],
    ids=["sdg", "gud", "an ensemble", "erm"],
)
def test_scoring_leaves_the_embedding_of_the_sample_by_the_trained_network(tiny, tmp_path, method, made, where):
    torch.manual_seed(0)
    run = od.fit(method, tiny, network=TinyNet(), embedding="pool", out=tmp_path / "a", progress=False)
    assert all(sample.embedding is None for sample in read_samples(run.folder))
    run.write_records(run.evaluate({"same": tiny}))
    samples = read_samples(run.folder)
    assert len(samples) == made
    run.network.module.eval()
    for sample in samples:
        (path,) = run.folder.glob(f"{where}/{sample.domain}.npy")
        images = torch.from_numpy(np.load(path).astype(np.float32)).permute(0, 3, 1, 2)
        with torch.no_grad():
            z = run.network.embed(images)[1].flatten(1)
        assert np.allclose(sample.embedding, z, atol=1e-2)


def test_a_broken_file_is_named(tiny, tmp_path):
    (tmp_path / "augmented").mkdir()
    (tmp_path / "augmented" / "augmented-1.sample.safetensors").write_bytes(b"garbage")
    with pytest.raises(UserError, match="augmented-1.sample.safetensors: cannot be understood"):
        read_samples(tmp_path)


def test_an_embedding_of_another_name_is_refused(tiny, tmp_path):
    list(Augmentation(tiny, 20, (0,), tmp_path / "augmented").make(halved, CPU))
    file = tmp_path / "augmented" / "augmented-1.embedding.safetensors"
    save_arrays(file, {"domain": "augmented-1"}, {"other": np.zeros((20, 3), np.float16)})
    with pytest.raises(UserError, match="augmented-1.embedding.safetensors: has no array 'embedding'"):
        read_samples(tmp_path)


def sample(count, labels, origins, channels=3):
    images = np.zeros((count, 4, 5, channels), np.uint8)
    images += np.arange(count, dtype=np.uint8)[:, None, None, None]
    return AugmentedSample("augmented-1", images, images + 100, np.array(labels), np.array(origins))


def test_originals_stand_above_what_became_of_them():
    pixels = mosaic(sample(3, [2, 0, 1], [0, 0, 0]))
    assert pixels.shape == (2 * 4 + 2, 8 * 7 - 2, 3)
    columns = [pixels[:, 7 * place : 7 * place + 5] for place in range(3)]
    assert [column[0, 0, 0] for column in columns] == [1, 2, 0]  # by class
    assert [column[-1, 0, 0] for column in columns] == [101, 102, 100]
    assert (pixels[4:6] == 255).all()
    assert (pixels[:, 5:7] == 255).all()


def test_images_of_the_source_and_of_all_classes_are_preferred():
    pixels = mosaic(sample(12, [0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    shown = [int(pixels[0, 7 * place, 0]) for place in range(8)]
    assert shown == [0, 3, 5, 2, 4, 6, 8, 7]
    assert mosaic(sample(3, [0, 1, 2], [1, 1, 1]))[0, 0, 0] == 0
    assert mosaic(sample(3, [], [0, 0, 0], channels=2)).shape[2] == 1
