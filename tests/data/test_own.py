from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from onedomain.data import data_folder
from onedomain.data.image_files import decode_image
from onedomain.data.own import as_domain, as_images
from onedomain.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def test_arrays_and_tensors_of_the_same_images_are_the_same_domain():
    tensors = torch.from_numpy(PIXELS).permute(0, 3, 1, 2), torch.from_numpy(LABELS)
    from_arrays, from_tensors = as_domain((PIXELS, LABELS)), as_domain(tensors)
    assert from_arrays.classes == ("0", "1", "2")
    assert from_arrays.fingerprint == from_tensors.fingerprint


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_channels_are_found_wherever_they_are(channels):
    last = np.random.default_rng(0).random((2, 6, 5, channels), dtype=np.float32)
    second = np.moveaxis(last, -1, 1)
    for images in (last, second, torch.from_numpy(last), torch.from_numpy(second.copy())):
        assert np.array_equal(as_images(images), last)


def test_other_numbers_of_channels_are_where_numpy_and_torch_have_them():
    images = np.zeros((2, 7, 6, 5), np.uint8)
    assert as_images(images).shape == (2, 7, 6, 5)
    assert as_images(torch.from_numpy(images)).shape == (2, 6, 5, 7)


def test_grey_images_get_a_channel():
    assert as_images(PIXELS[..., 0]).shape == (6, 5, 4, 1)
    assert as_images(torch.from_numpy(PIXELS[..., 0])).shape == (6, 5, 4, 1)


def test_doubles_become_float32_and_keep_their_range():
    images = as_images(PIXELS / 50 - 1)
    assert images.dtype == np.float32
    assert images.min() == -1


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((3, 4)), r"images have shape \(3, 4\)"),
        (np.zeros((3, 4, 4), np.int64), "images are of type int64; allowed: uint8"),
        (np.full((3, 4, 4), np.nan), "NaN or infinite"),
    ],
)
def test_wrong_images_are_refused(images, message):
    with pytest.raises(UserError, match=message):
        as_images(images)


@pytest.mark.parametrize("labels", [[-1, 0, 1, 2, 0, 1], [0.5] * 6])
def test_wrong_labels_are_refused(labels):
    with pytest.raises(UserError, match="label"):
        as_domain((PIXELS, labels))


def test_something_else_is_refused():
    with pytest.raises(UserError, match=r"source: got a int; allowed: \(images, labels\)"):
        as_domain(3)


class RandomDataset(torch.utils.data.Dataset):
    """A map-style dataset with a random transform, as users have."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.from_numpy(PIXELS[index]).permute(2, 0, 1) / 255 + torch.rand(1), int(LABELS[index])


def test_a_dataset_keeps_its_random_transforms():
    domain = as_domain(RandomDataset())
    assert domain.labels.tolist() == LABELS.tolist()
    assert domain.images.shape == (6, 5, 4, 3)
    first, second = domain.batch([3]).images, domain.batch([3]).images
    difference = first - second
    assert difference.abs().min() > 0
    assert difference.std() < 1e-6


def test_a_dataset_of_pil_images():
    class Pictures(list):
        pass

    pictures = Pictures((Image.fromarray(image), label) for image, label in zip(PIXELS, LABELS, strict=True))
    assert np.array_equal(as_domain(pictures).images[np.array([4])][0], PIXELS[4])


def test_a_dataset_that_names_its_classes_keeps_them():
    class Named(list):
        classes = ("b", "c")

    named = Named((image, label % 2) for image, label in zip(PIXELS, LABELS, strict=True))
    assert as_domain(named, classes=("a", "b")).classes == ("b", "c")


@pytest.mark.parametrize("data", [{0: 1}, np.zeros(3), {"images": PIXELS}])
def test_mappings_and_bare_arrays_are_refused(data):
    with pytest.raises(UserError, match=r"allowed: \(images, labels\)"):
        as_domain(data)


def test_ragged_lists_are_refused():
    with pytest.raises(UserError, match="rows of different lengths"):
        as_domain(([[[1, 2], [3]]], [0]))


def test_half_precision_tensors_are_taken():
    images = torch.rand(2, 3, 4, 5, dtype=torch.bfloat16)
    assert as_images(images).dtype == np.float32


def test_sixteen_bits_are_scaled_not_cut(tmp_path):
    wide = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(wide).save(tmp_path / "x.png")
    assert np.array_equal(decode_image(tmp_path / "x.png", None, 1)[..., 0], np.arange(256).reshape(16, 16))
    Image.fromarray(wide.astype(np.float32)).save(tmp_path / "x.tiff")
    with pytest.raises(UserError, match="x.tiff: has pixels of type F; allowed: 8 or 16 bits"):
        decode_image(tmp_path / "x.tiff", None, 1)


@pytest.mark.parametrize(("items", "message"), [([], "empty"), ([1, 2, 3], "items are int; allowed: pairs")])
def test_a_dataset_without_pairs_is_refused(items, message):
    with pytest.raises(UserError, match=message):
        as_domain(items)


def test_the_data_folder_is_the_given_one_or_the_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDOMAIN_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    with pytest.raises(UserError, match="--data: .*none' is not a folder"):
        data_folder(tmp_path / "none")
    assert data_folder(tmp_path / "none", to_write=True) == tmp_path / "none"
    monkeypatch.delenv("ONEDOMAIN_DATA")
    assert data_folder().name == "data"
