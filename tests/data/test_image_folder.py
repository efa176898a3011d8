from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.data import files_on_demand
from onedomain.data.files_on_demand import FilesOnDemand
from onedomain.data.image_folder import image_folder
from onedomain.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def write_folder(root, images=PIXELS, labels=LABELS, names=("ant", "bee", "cat")):
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        folder = root / names[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{place}.png")
    return root


def test_a_folder_has_one_class_a_sub_folder(tmp_path):
    domain = image_folder(write_folder(tmp_path / "day"))
    assert domain.name == "day"
    assert domain.classes == ("ant", "bee", "cat")
    assert domain.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(domain.images, PIXELS[[0, 3, 1, 4, 2, 5]])


def test_a_folder_of_a_known_model_has_the_models_classes(tmp_path):
    write_folder(tmp_path, PIXELS[:2], [0, 1], ("cat", "bee"))
    assert image_folder(tmp_path, classes=("ant", "bee", "cat")).labels.tolist() == [1, 2]
    with pytest.raises(UserError, match=r"class: 'cat' is not known, did you mean 'cats'"):
        image_folder(tmp_path, classes=("bee", "cats"))


def test_grey_files_can_be_read_as_colour_and_the_reverse(tmp_path):
    write_folder(tmp_path, PIXELS[..., 0])
    assert image_folder(tmp_path).image_shape == (5, 4, 3)
    assert image_folder(tmp_path, channels=1).image_shape == (5, 4, 1)


def test_bad_folders_are_one_line(tmp_path):
    with pytest.raises(UserError, match="is not a folder"):
        image_folder(tmp_path / "none")
    with pytest.raises(UserError, match="has no sub-folders"):
        image_folder(tmp_path)
    write_folder(tmp_path)
    (tmp_path / "dog").mkdir()
    with pytest.raises(UserError, match="dog: holds no image"):
        image_folder(tmp_path)
    (tmp_path / "dog" / "broken.png").write_bytes((tmp_path / "ant" / "0.png").read_bytes()[:60])
    with pytest.raises(UserError, match=r"broken.png: cannot be read"):
        image_folder(tmp_path)


def test_images_of_two_sizes_are_brought_to_one(tmp_path, capsys):
    write_folder(tmp_path)
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "cat" / "z.png")
    assert image_folder(tmp_path).image_shape == (32, 32, 3)
    assert "images of several sizes are brought to 32×32" in capsys.readouterr().err
    assert image_folder(tmp_path, size=(8, 8)).images.shape == (7, 8, 8, 3)
    Image.fromarray(np.zeros((90, 120, 3), np.uint8)).save(tmp_path / "cat" / "z.png")
    assert image_folder(tmp_path).image_shape == (160, 160, 3)


def test_large_photographs_are_brought_to_a_size_that_can_be_trained_on(tmp_path, capsys):
    write_folder(tmp_path, np.zeros((2, 300, 400, 3), np.uint8), [0, 1], ("ant", "bee"))
    assert image_folder(tmp_path).image_shape == (160, 160, 3)
    assert "images of 400×300 are brought to 160×160" in capsys.readouterr().err


def test_a_table_names_images_and_their_classes(tmp_path):
    folder = image_folder(write_folder(tmp_path))
    names = ("ant", "bee", "cat")
    rows = [f"{names[label]}/{place}.png, {names[label]}" for place, label in enumerate(LABELS)]
    (tmp_path / "all.csv").write_text("\n".join(["Path,Label", *rows]))
    table = image_folder(tmp_path / "all.csv")
    assert (table.name, table.classes) == ("all", folder.classes)
    assert np.array_equal(table.images, PIXELS)
    assert table.labels.tolist() == LABELS.tolist()


def test_a_table_may_be_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    write_folder(tmp_path)
    parquet.write_table(
        pyarrow.table({"path": ["bee/1.png", "cat/2.png"], "class": ["b", "c"]}), tmp_path / "x.parquet"
    )
    assert image_folder(tmp_path / "x.parquet").classes == ("b", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has the columns none; allowed: one called path or file or image"),
        ("path,kind\na.png,b", "has the columns path, kind; allowed: one called label or class"),
        ("path,label\na.png", "line 2 has 1 fields; allowed: 2, as the header"),
        ("path,label\na.png,", "line 2 has no label"),
        ("path,label\nnone.png,b", "none.png: does not exist"),
        ("path,label", "holds no image"),
    ],
)
def test_a_table_that_is_not_right_is_one_line(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        image_folder(tmp_path / "t.csv")


def test_many_images_are_decoded_when_they_are_asked_for(tmp_path, monkeypatch):
    in_memory = image_folder(write_folder(tmp_path))
    monkeypatch.setattr(files_on_demand, "IN_MEMORY", 10)
    on_demand = image_folder(tmp_path)
    assert isinstance(on_demand.images, FilesOnDemand)
    some = np.array([4, 0, 4])
    assert np.array_equal(on_demand.images[some], in_memory.images[some])
    part = on_demand.subset([5, 3, 1])
    part.ask([2, 0])
    assert set(on_demand.images._asked) == {1, 5}
    assert np.array_equal(part.batch([0, 2]).images, in_memory.subset([5, 1]).batch([0, 1]).images)
    assert not on_demand.images._asked
    assert on_demand.fingerprint == image_folder(tmp_path).fingerprint


def test_memory_stays_flat_however_many_there_are(tmp_path, monkeypatch):
    """Only the batch at hand and the next one are in memory: of 20,000 images, which would be 240 MB."""
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(tmp_path / "one.png")
    monkeypatch.setattr(files_on_demand, "IN_MEMORY", 10)
    images = files_on_demand.read_images([tmp_path / "one.png"] * 20_000, size=None, channels=3)
    domain = od.Domain("many", "train", images, np.arange(20_000) % 2, ("a", "b"))
    tracemalloc.start()
    for start in range(0, 1_600, 32):
        domain.ask(range(start + 32, start + 64))
        domain.batch(range(start, start + 32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 32 * 64 * 64 * 3


def test_training_on_them_gives_the_same_weights(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    write_folder(
        tmp_path / "data", rng.integers(0, 256, (40, 16, 16, 3), dtype=np.uint8), np.arange(40) % 2, ("a", "b")
    )
    options = {"network": "lenet", "progress": False}
    plain = od.fit(od.ERM(steps=5), image_folder(tmp_path / "data"), **options).network.state_dict()
    monkeypatch.setattr(files_on_demand, "IN_MEMORY", 10)
    lazy = od.fit(od.ERM(steps=5), image_folder(tmp_path / "data"), **options).network.state_dict()
    assert all((tensor == lazy[name]).all() for name, tensor in plain.items())


def test_photographs_are_turned_upright_and_transparent_ones_lie_on_white(tmp_path):
    image = Image.fromarray(np.zeros((4, 8, 3), np.uint8))
    image.putpixel((0, 0), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise
    (tmp_path / "a").mkdir()
    image.save(tmp_path / "a" / "turned.png", exif=exif)
    [turned] = image_folder(tmp_path).images
    assert turned.shape == (8, 4, 3)
    assert turned[0, 3].tolist() == [255, 0, 0]
    (tmp_path / "a" / "turned.png").unlink()
    Image.new("RGBA", (4, 4), (0, 0, 255, 0)).save(tmp_path / "a" / "clear.png")
    assert (image_folder(tmp_path).images == 255).all()
