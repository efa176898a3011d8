from __future__ import annotations

import numpy as np
import pytest
import torch

from onedomain.components import augmented_domains
from onedomain.components.augmented_domains import AugmentedDomain, pooled
from onedomain.errors import UserError
from tests.conftest import make_tiny

CPU = torch.device("cpu")


def test_a_pool_gives_images_in_the_order_asked_for():
    one, two = make_tiny(9, seed=0), make_tiny(6, seed=1)
    pool = pooled([one, two])
    assert len(pool) == 15
    images, labels = pool.batch(np.array([14, 0, 9, 8]))
    expected = [two.batch([5]), one.batch([0]), two.batch([0]), one.batch([8])]
    assert torch.equal(images, torch.cat([batch.images for batch in expected]))
    assert torch.equal(labels, torch.cat([batch.labels for batch in expected]))
    assert images.is_contiguous(memory_format=torch.channels_last) or images.shape[1] == 1


@pytest.fixture(autouse=True)
def five_at_once(monkeypatch):
    monkeypatch.setattr(augmented_domains, "BATCH", 5)


def halved(domain):
    """Each step replaces five images."""
    return domain.make(lambda batch: batch.images / 2, CPU)


@pytest.mark.parametrize("stored", [True, False])
def test_images_keep_their_labels_while_they_are_replaced(tmp_path, stored):
    tiny = make_tiny(20)
    made = AugmentedDomain("augmented-1", [tiny], 12, (0, 1), tmp_path if stored else None)
    assert list(halved(made)) == [5 / 12, 10 / 12, 1]
    domain = made.as_domain()
    assert len(domain) == 12
    originals = tiny.batch(made.chosen)
    assert torch.equal(domain.batch(range(12)).labels, originals.labels)
    assert torch.allclose(domain.batch(range(12)).images, originals.images / 2, atol=1e-3)
    assert isinstance(domain.images, np.memmap) == stored


def test_one_that_was_cut_off_goes_on_where_it_was(tmp_path):
    pool = [make_tiny(20)]
    list(halved(AugmentedDomain("a", pool, 12, (3, 1), tmp_path / "whole")))
    cut = halved(AugmentedDomain("a", pool, 12, (3, 1), tmp_path / "cut"))
    next(cut)
    next(cut)
    del cut
    list(halved(AugmentedDomain("a", pool, 12, (3, 1), tmp_path / "cut", done=5)))
    assert (tmp_path / "cut" / "a.npy").read_bytes() == (tmp_path / "whole" / "a.npy").read_bytes()


def test_the_seed_decides_which_images_are_taken():
    pool = [make_tiny(60)]
    first = AugmentedDomain("a", pool, 30, (0, 1), None).chosen
    assert np.array_equal(first, AugmentedDomain("a", pool, 30, (0, 1), None).chosen)
    assert not np.array_equal(first, AugmentedDomain("a", pool, 30, (0, 2), None).chosen)
    assert len(set(first)) == 30


@pytest.mark.parametrize("damage", ["missing", "truncated", "other"])
def test_a_file_that_is_not_the_runs_own_is_refused(tmp_path, damage):
    pool = [make_tiny(20)]
    list(halved(AugmentedDomain("a", pool, 12, (0, 1), tmp_path)))
    path = tmp_path / "a.npy"
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    else:
        np.save(path, np.zeros(3))
    with pytest.raises(UserError, match="a.npy"):
        AugmentedDomain("a", pool, 12, (0, 1), tmp_path, done=12)
