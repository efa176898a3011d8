from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.data.datasets import synthia
from onedomain.data.datasets.synthia import SYNTHIA
from tests.data.frames import make_sequence, write_mask, write_png16


def test_the_class_is_the_first_channel_of_sixteen_bits(tmp_path):
    ids = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 15, 0, 0]])
    write_png16(tmp_path / "a.png", np.stack([ids, np.full_like(ids, 976), np.full_like(ids, 7)], -1))
    assert synthia.read_mask(tmp_path / "a.png").tolist() == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13, 0, 0],
    ]


def test_the_real_frame(real_data):
    path = real_data / "synthia" / "000000_label.png"
    if not path.exists():
        pytest.skip("no real frame: synthia/000000_label.png is not in ONEDOMAIN_DATA")
    mask = synthia.read_mask(path)
    assert mask.shape == (760, 1280)
    seen = {name: synthia.CLASSES[mask[place]] for name, place in SEEN.items()}
    assert seen == {name: name.split(":")[0] for name in SEEN}
    assert (np.bincount(mask.ravel(), minlength=14) == 0).nonzero()[0].tolist() == [4, 10, 11, 13]


# What a person sees in the frame, and where: row, column.
SEEN = {
    "sky": (30, 100),
    "building": (100, 400),
    "vegetation": (150, 1150),
    "car": (450, 200),
    "car:red": (350, 530),
    "road": (700, 700),
    "lane marking": (480, 520),
    "pole": (300, 1055),
    "fence": (355, 440),
    "void": (420, 1200),
}


def test_fourteen_outputs_of_which_void_is_one_that_never_counts():
    assert len(synthia.CLASSES) == len(synthia.COLOURS) == 14
    assert synthia.CLASSES[synthia.VOID] == "void"
    assert 13 not in synthia.IDS
    assert 14 not in synthia.IDS


def test_the_source_is_cut_by_seed_into_parts_that_share_no_frame():
    parts = synthia.split_source(1451)
    assert [len(parts[name]) for name in ("train", "test", "calibration")] == [900, 276, 275]
    assert sorted(place for places in parts.values() for place in places) == list(range(1451))
    assert parts == synthia.split_source(1451)
    assert np.diff(parts["train"]).max() < 10  # from all over the video
    assert {name: len(places) for name, places in synthia.split_source(5).items()} == {
        "train": 3,
        "test": 1,
        "calibration": 1,
    }
    with pytest.raises(od.UserError, match="holds 3 frames; allowed: at least 4"):
        synthia.split_source(3)


def test_a_sequence_is_read_from_its_official_folders(tmp_path):
    make_sequence(tmp_path, "new-york", "fog")
    domain = SYNTHIA.load("new-york-fog", tmp_path)
    assert (domain.name, domain.split, len(domain), domain.image_shape) == ("new-york-fog", "test", 5, (192, 320, 3))
    images, labels = domain.batch([0, 4])
    assert images.shape == (2, 3, 192, 320)
    assert labels.shape == (2, 192, 320)
    names = [synthia.CLASSES[label] for label in np.unique(labels)]
    assert names == ["void", "sky", "road", "car"]
    assert float(images[0, 2][labels[0] == 1].mean()) > 0.9  # the sky is blue where the mask says sky
    nested = tmp_path / "again" / "synthia" / "SYNTHIA-SEQS-02-FOG"
    nested.mkdir(parents=True)
    (tmp_path / "synthia" / "SYNTHIA-SEQS-02-FOG").rename(nested / "SYNTHIA-SEQS-02-FOG")
    assert len(SYNTHIA.load("new-york-fog", tmp_path / "again")) == 5


def test_a_small_source_is_marked_as_such(tmp_path):
    make_sequence(tmp_path, "highway", "dawn")
    assert SYNTHIA.of_source("train", "dawn", tmp_path).note == "3 of 900 images"
    assert SYNTHIA.of_source("test", "dawn", tmp_path).split == "test"
    assert len(SYNTHIA.of_source("calibration", "dawn", tmp_path)) == 1


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("8-bit", "000002.png: is a PNG of 8 bits, RGB; allowed: a 16-bit RGB PNG with the class in its first channel"),
        ("grey", "000002.png: is a PNG of 8 bits, grey"),
        ("16-bit grey", "000002.png: is a PNG of 16 bits, grey"),
        ("size", "000002.png: is 21×12 pixels, and .*RGB/Stereo_Left/Omni_F/000002.png is 20×12"),
        ("missing", "LABELS/Stereo_Left/Omni_F/000002.png: is missing; allowed: a mask for each frame"),
        ("class", "000002.png: class id 13 found; allowed: 0, 1, 2"),
        ("large", "000002.png: class id 976 found"),
        ("cut", "000002.png: is not a whole PNG file"),
        ("bit", "000002.png: is not a whole PNG file"),
        ("empty", "000002.png: is no PNG file"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, capfd, what, message):
    folder = make_sequence(tmp_path, "highway", "dawn")
    path = folder / "GT" / "LABELS" / synthia.CAMERA / "000002.png"
    ids = np.full((12, 20), 3)
    if what == "8-bit":
        Image.fromarray(np.zeros((12, 20, 3), np.uint8)).save(path)
    elif what == "grey":
        Image.fromarray(ids.astype(np.uint8)).save(path)
    elif what == "16-bit grey":
        Image.fromarray(ids.astype(np.uint16)).save(path)
    elif what == "size":
        write_mask(path, np.full((12, 21), 3))
    elif what == "missing":
        path.unlink()
    elif what in ("class", "large"):
        ids[0, 0] = 13 if what == "class" else 976
        write_mask(path, ids)
    elif what == "cut":
        path.write_bytes(path.read_bytes()[:60])
    elif what == "bit":
        path.write_bytes(path.read_bytes().replace(b"IDATx", b"IDATy"))
    else:
        path.write_bytes(b"")
    with pytest.raises(od.UserError, match=message):
        SYNTHIA.load("highway-dawn", tmp_path).batch(range(5))
    assert capfd.readouterr() == ("", "")  # nor does OpenCV say anything


def test_what_is_missing_is_said_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(
        od.UserError, match="domain 'highway-dawn': not found in .*SYNTHIA-SEQS-01-DAWN.*synthia-dataset"
    ):
        SYNTHIA.load("highway-dawn", tmp_path)
    with pytest.raises(od.UserError, match="part of synthia: 'tokyo-dawn' is not known"):
        SYNTHIA.load("tokyo-dawn", tmp_path)


def test_list_and_check_know_the_sequences(tmp_path):
    assert SYNTHIA.list(tmp_path).state == "missing"
    folder = make_sequence(tmp_path, "highway", "dawn")
    assert SYNTHIA.list(tmp_path).counts == {"highway-dawn": 5}
    row = SYNTHIA.check(tmp_path)
    assert row.state == "partial"
    assert "SYNTHIA-SEQS-02-DAWN is missing" in row.problems
    for part in ("RGB", "GT/LABELS"):
        (folder / part / synthia.CAMERA / "000001.png").unlink()
    assert "SYNTHIA-SEQS-01-DAWN: 1 frames are missing, the first is 000001" in SYNTHIA.check(tmp_path).problems
    write_mask(folder / "GT" / "LABELS" / synthia.CAMERA / "000003.png", np.full((12, 20), 14))
    row = SYNTHIA.check(tmp_path)
    assert row.state == "broken"
    assert "000003.png: class id 14 found" in row.problems[0]
