from __future__ import annotations

import numpy as np
import pytest
import torch

from onedomain.data.domain import Domain
from onedomain.errors import UserError

IMAGES = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3)
LABELS = np.array([0, 1, 1, 0])


def domain(**changes):
    return Domain(
        **{"name": "d", "split": "train", "images": IMAGES, "labels": LABELS, "classes": ("a", "b"), **changes}
    )


def test_a_batch_is_float_from_0_to_1_in_channels_last_layout():
    images, labels = domain().batch([2, 0])
    assert images.shape == (2, 3, 2, 3)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(images[0, 1], torch.from_numpy(IMAGES[2, :, :, 1]) / 255)
    assert labels.tolist() == [1, 0]


def test_floats_are_taken_as_they_are():
    images = np.linspace(-2, 2, IMAGES.size, dtype=np.float32).reshape(IMAGES.shape)
    batch = domain(images=images).batch([1])
    assert torch.equal(batch.images[0], torch.from_numpy(images[1]).permute(2, 0, 1))


def test_a_batch_does_not_share_memory_with_the_domain():
    images = IMAGES.astype(np.float32)
    domain(images=images).batch([0]).images.fill_(7)
    assert images[0].max() < 18


def test_dense_labels_and_void():
    labels = np.zeros((4, 2, 3), np.int32)
    labels[0, 0, 0] = 255
    dense = domain(labels=labels, void=255)
    assert dense.dense
    assert dense.batch([0]).labels.shape == (1, 2, 3)
    with pytest.raises(UserError, match="a label is 255; allowed: 0 to 1"):
        domain(labels=labels)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": IMAGES[0]}, r"images have shape \(2, 3, 3\)"),
        ({"images": IMAGES[:0], "labels": LABELS[:0]}, "images have shape"),
        ({"labels": LABELS[:3]}, r"labels have shape \(3,\) for images of shape \(4, 2, 3, 3\)"),
        ({"labels": LABELS.astype(float)}, "labels are of type float64; allowed: whole numbers"),
        ({"labels": np.array([0, 1, 2, 0])}, r"a label is 2; allowed: 0 to 1 \(2 classes\)"),
        ({"labels": np.array([0, -1, 1, 0])}, "a label is -1"),
        ({"images": IMAGES.astype(np.int64)}, "images are of type int64; allowed: uint8"),
        ({"void": 1}, "void is 1 while each image has one label"),
    ],
)
def test_wrong_data_is_one_line_that_names_the_domain(changes, message):
    with pytest.raises(UserError, match=rf"domain 'd' \(train\): {message}"):
        domain(**changes)


def test_an_empty_class_is_refused_for_training():
    with pytest.raises(UserError, match="no image of class c"):
        domain(classes=("a", "b", "c")).require_every_class()
    assert domain().require_every_class() is not None


def test_a_subset_keeps_images_and_labels_together():
    part = domain().subset([3, 1], split="validation")
    assert part.split == "validation"
    assert np.array_equal(part.images, IMAGES[[3, 1]])
    assert part.labels.tolist() == [0, 1]


def test_the_fingerprint_tells_any_change():
    other_pixels = IMAGES.copy()
    other_pixels[3, 1, 2, 2] ^= 1
    changes = [
        {},
        {"images": other_pixels},
        {"labels": np.array([1, 1, 1, 0])},
        {"classes": ("a", "c")},
        {"images": IMAGES.reshape(4, 3, 2, 3)},
    ]
    assert len({domain(**change).fingerprint for change in changes}) == len(changes)
    assert domain(name="x", images=IMAGES.copy()).fingerprint == domain().fingerprint


def test_the_value_range_is_that_of_a_batch():
    assert domain().value_range == (0.0, 1.0)
    low, high = domain(images=IMAGES.astype(np.float32) / 10 - 2).value_range
    assert low == pytest.approx(-2)
    assert high == pytest.approx(7.1 - 2)


def test_an_image_is_known_by_its_fingerprint_whatever_its_form_and_place():
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
    labels = np.zeros(5, np.int64)
    as_bytes = Domain("a", "train", images, labels, ("x",))
    as_floats = Domain("b", "test", images[::-1].astype(np.float32) / 255, labels, ("x",))
    found = as_bytes.image_fingerprints()
    assert len(set(found)) == 5
    assert as_floats.image_fingerprints() == found[::-1]
    changed = images.copy()
    changed[2, 3, 3, 2] ^= 1
    assert Domain("c", "test", changed, labels, ("x",)).image_fingerprints()[2] != found[2]
    assert np.array_equal(as_bytes.without(found[:2]).images, images[2:])
    assert as_bytes.without(["another"]) is as_bytes
    assert as_bytes.without(found) is None


def test_labels_may_be_a_list_or_a_tensor():
    assert domain(labels=[0, 1, 1, 0]).batch([1]).labels.tolist() == [1]
    assert domain(labels=torch.tensor([0, 1, 1, 0])).batch([1]).labels.tolist() == [1]


def test_a_subset_of_large_arrays_is_looked_up_and_has_the_same_fingerprint(monkeypatch):
    labels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3) % 2
    whole = domain(labels=labels)
    copied = whole.subset([3, 1])
    monkeypatch.setattr("onedomain.data.domain.LARGEST_COPY", 10)
    looked_up = whole.subset([3, 1])
    assert not isinstance(looked_up.images, np.ndarray)
    assert not isinstance(looked_up.labels, np.ndarray)
    assert looked_up.fingerprint == copied.fingerprint
    for one, other in zip(looked_up.batch([1, 0]), copied.batch([1, 0]), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(looked_up.subset([1]).batch([0]).labels, whole.batch([1]).labels)


def test_the_fingerprint_does_not_depend_on_how_small_labels_are_stored():
    labels = np.zeros((4, 2, 3), np.uint8)
    assert domain(labels=labels).fingerprint == domain(labels=labels.astype(np.int64)).fingerprint
    assert domain(labels=labels).labels.dtype == np.uint8
