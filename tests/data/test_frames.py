from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.data import frames
from onedomain.data.frames import Files, frame_folder, nearest


def own_folder(root, count=3, size=(8, 12), void=None):
    """Images whose grey value is 20 times the class of each pixel; masks are indexed PNG."""
    rng = np.random.default_rng(0)
    for part in ("images", "labels"):
        (root / part).mkdir(parents=True)
    for number in range(count):
        mask = rng.integers(0, 3, size).astype(np.uint8)
        mask[0] = 2 if void is None else void
        Image.fromarray(np.repeat(20 * mask[..., None], 3, 2)).save(root / "images" / f"{number}.png")
        picture = Image.fromarray(mask, "P")
        picture.putpalette(bytes(range(256)) * 3)
        picture.save(root / "labels" / f"{number}.png")
    return root


def test_images_and_masks_of_one_name_belong_together(tmp_path):
    domain = frame_folder(own_folder(tmp_path / "a"), classes=["a", "b", "c"], size=(8, 12))
    assert domain.dense
    assert domain.image_shape == (8, 12, 3)
    images, labels = domain.batch([2, 0])
    assert labels.dtype.is_floating_point is False
    assert np.allclose(images[:, 0].numpy() * 255, 20 * labels.numpy())


def test_image_and_mask_are_resized_together(tmp_path):
    folder = own_folder(tmp_path / "a", count=1)
    mask = np.repeat(np.uint8([0, 1, 2]), 40)[None].repeat(80, 0)  # thirds, side by side
    mask[:20] = 2
    Image.fromarray(np.repeat(20 * mask[..., None], 3, 2)).save(folder / "images" / "0.png")
    Image.fromarray(mask).save(folder / "labels" / "0.png")
    images, labels = frame_folder(folder, classes=["a", "b", "c"], size=(16, 36)).batch([0])
    assert set(np.unique(labels)) == {0, 1, 2}  # a class between two others is never made up
    away = images[0, 0].numpy() * 255 - 20 * labels[0].numpy()
    inside = np.ones((16, 36), bool)
    inside[3:5] = False
    inside[:, [11, 12, 23, 24]] = False  # an image is smooth at an edge, a mask is not
    assert np.abs(away[inside]).max() < 3  # beyond an edge it overshoots a little; another class would be 20


def test_the_nearest_pixel_is_that_of_the_centre():
    mask = np.arange(6).reshape(1, 6)
    assert nearest(mask, (1, 3)).tolist() == [[1, 3, 5]]
    assert nearest(mask, (1, 2)).tolist() == [[1, 4]]
    assert nearest(mask, (2, 12))[1].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_frames_are_read_when_asked_for_and_again_only_if_there_is_no_room(tmp_path, monkeypatch):
    read = []

    def count(path):
        read.append(path.name)
        return np.zeros((4, 4), np.uint8)

    paths = [tmp_path / str(number) for number in range(6)]
    for path in paths:
        path.touch()
    monkeypatch.setattr(frames, "_CACHE", frames._Cache(4 * 16))
    files = Files(paths, (4, 4), count)
    assert read == []
    files[np.array([1, 3])]
    assert sorted(read) == ["1", "3"]
    files[np.array([3, 1])]
    assert sorted(read) == ["1", "3"]
    for place in (0, 2, 4, 5):  # one after another: of several at once no one knows which comes first
        files[np.array([place])]
    files[np.array([0])]  # four fit, and this one was asked for before them
    assert read.count("0") == 1
    files[np.array([1])]  # this one had to go
    assert read.count("1") == 2
    assert frames._CACHE.held <= 64


def test_frames_are_decoded_ahead_when_they_are_announced(tmp_path):
    domain = frame_folder(own_folder(tmp_path / "a", count=4), classes=["a", "b", "c"], size=(8, 12))
    part = domain.subset([3, 1, 0])
    part.ask([0, 2])
    assert set(domain.images._asked) == {3, 0}
    assert np.array_equal(part.batch([2, 0]).images, domain.batch([0, 3]).images)
    assert not domain.images._asked


def test_a_subset_of_frames_reads_only_its_own(tmp_path):
    domain = frame_folder(own_folder(tmp_path / "a", count=4), classes=["a", "b", "c"], size=(8, 12))
    part = domain.subset([3, 1])
    assert len(part) == 2
    assert np.array_equal(part.batch([0]).labels, domain.batch([3]).labels)
    assert np.array_equal(part.subset([1]).batch([0]).images, domain.batch([1]).images)


def test_the_fingerprint_follows_names_and_sizes(tmp_path):
    folder = own_folder(tmp_path / "a")
    before = frame_folder(folder, classes=["a", "b", "c"], size=(8, 12))
    assert frame_folder(folder, classes=["a", "b", "c"], size=(8, 12)).fingerprint == before.fingerprint
    assert before.subset([0, 1]).fingerprint != before.subset([0, 2]).fingerprint
    file = folder / "labels" / "1.png"
    file.write_bytes(file.read_bytes() + b"\0")
    assert frame_folder(folder, classes=["a", "b", "c"], size=(8, 12)).fingerprint != before.fingerprint


def spoil(folder, what):
    mask = folder / "labels" / "1.png"
    if what == "missing mask":
        mask.unlink()
    elif what == "missing image":
        (folder / "images" / "1.png").unlink()
    elif what == "size":
        Image.fromarray(np.zeros((8, 13), np.uint8)).save(mask)
    elif what == "colour":
        Image.fromarray(np.zeros((8, 12, 3), np.uint8)).save(mask)
    elif what == "no png":
        mask.write_bytes(b"GIF89a")
    elif what == "class":
        Image.fromarray(np.full((8, 12), 3, np.uint8)).save(mask)
    elif what == "cut":
        mask.write_bytes(mask.read_bytes()[:100])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("missing mask", r"labels/1.png: is missing; allowed: a mask for each frame; there is .*images/1.png"),
        ("missing image", r"images/1.png: is missing; allowed: a frame for each mask; there is .*labels/1.png"),
        ("size", r"labels/1.png: is 13×8 pixels, and .*images/1.png is 12×8"),
        ("colour", r"labels/1.png: is a PNG of 8 bits, RGB; allowed: an 8-bit PNG, grey or indexed"),
        ("no png", r"labels/1.png: is no PNG file"),
    ],
)
def test_what_does_not_fit_is_known_before_anything_is_read(tmp_path, what, message):
    folder = own_folder(tmp_path / "a")
    spoil(folder, what)
    with pytest.raises(od.UserError, match=message):
        frame_folder(folder, classes=["a", "b", "c"], size=(8, 12))


@pytest.mark.parametrize(
    ("what", "message"),
    [("class", r"labels/1.png: class id 3 found; allowed: 0 to 2"), ("cut", r"labels/1.png: cannot be read")],
)
def test_what_is_wrong_inside_is_named_when_it_is_read(tmp_path, what, message):
    folder = own_folder(tmp_path / "a")
    spoil(folder, what)
    domain = frame_folder(folder, classes=["a", "b", "c"], size=(8, 12))
    domain.batch([0, 2])
    with pytest.raises(od.UserError, match=message):
        domain.batch([0, 1])


def test_void_may_lie_beside_the_classes(tmp_path):
    folder = own_folder(tmp_path / "a", void=255)
    domain = frame_folder(folder, classes=["a", "b", "c"], size=(8, 12), void=255)
    assert (domain.batch([0]).labels[0, 0] == 255).all()
    with pytest.raises(od.UserError, match="class id 255 found"):
        frame_folder(folder, classes=["a", "b", "c"], size=(8, 12)).batch([0])


def test_grey_frames_stay_grey(tmp_path):
    domain = frame_folder(own_folder(tmp_path / "a"), classes=["a", "b", "c"], size=(8, 12), channels=1)
    images, labels = domain.batch([0])
    assert images.shape == (1, 1, 8, 12)
    assert np.allclose(images[:, 0].numpy() * 255, 20 * labels.numpy())
