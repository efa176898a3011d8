from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onedomain.data.datasets.photographs import HELD_OUT_EVERY, OFFICE_CALTECH, PACS
from onedomain.errors import UserError

SMALL = replace(OFFICE_CALTECH, counts={"amazon": 40, "webcam": 4}, classes=("bike", "mug"), side=8)


def write(folder: Path, count: int, first: int = 0) -> None:
    folder.mkdir(parents=True)
    for number in range(first, first + count):
        Image.new("RGB", (10, 12), (number, 0, 0)).save(folder / f"{number:03}.png")


@pytest.fixture
def data(tmp_path):
    for place, name in enumerate(SMALL.classes):
        write(tmp_path / "office-caltech" / "amazon" / name, 20, first=20 * place)
        write(tmp_path / "office-caltech" / "webcam" / name, 2)
    return tmp_path


def test_a_domain_is_read_by_class(data):
    domain = SMALL.load("webcam", data)
    assert (domain.name, domain.images.shape, domain.classes, domain.note) == (
        "webcam",
        (4, 8, 8, 3),
        SMALL.classes,
        "",
    )
    assert domain.labels.tolist() == [0, 0, 1, 1]


def test_what_is_held_out_of_a_source_is_not_trained_on(data):
    train, held_out = (SMALL.source("amazon", data, held_out=each) for each in (False, True))
    assert (len(train), len(held_out)) == (40 - 40 // HELD_OUT_EVERY, 40 // HELD_OUT_EVERY)
    reds = [set(np.asarray(each.images)[:, 0, 0, 0].tolist()) for each in (train, held_out)]
    assert reds[0] | reds[1] == set(range(40))
    assert not reds[0] & reds[1]


def test_it_is_listed_and_checked(data):
    row = SMALL.check(data)
    assert (row.state, row.counts) == ("whole", {"amazon": 40, "webcam": 4})
    next((data / "office-caltech" / "webcam" / "mug").iterdir()).unlink()
    assert SMALL.check(data).problems == ["webcam: 3 of 4 images"]
    assert SMALL.load("webcam", data).note == "3 of 4 images"
    assert SMALL.list(data / "none").where.startswith("put Office-Caltech-10 into office-caltech/")


PACS_SMALL = replace(PACS, counts={"photo": 3}, classes=("dog", "horse"), side=8)


def write_pacs(data: Path, lines: list[str]) -> None:
    write(data / "pacs" / "kfold" / "photo" / "dog", 2)
    write(data / "pacs" / "kfold" / "photo" / "horse", 1)
    lists = data / "pacs" / "splits"
    lists.mkdir()
    (lists / "photo_train_kfold.txt").write_text("\n".join(lines))
    (lists / "photo_crossval_kfold.txt").write_text("photo/dog/001.png 1\n")


def test_pacs_is_split_by_its_official_lists(tmp_path):
    write_pacs(tmp_path, ["photo/dog/000.png 1", "photo/horse/000.png 2"])
    assert PACS_SMALL.source("photo", tmp_path).labels.tolist() == [0, 1]
    assert PACS_SMALL.source("photo", tmp_path, held_out=True).labels.tolist() == [0]
    assert len(PACS_SMALL.load("photo", tmp_path)) == 3


@pytest.mark.parametrize("line", ["photo/dog/009.png 1", "photo/dog/000.png 3", "photo/dog/000.png", "../x 1"])
def test_a_list_that_names_what_is_not_there_is_refused(tmp_path, line):
    write_pacs(tmp_path, ["photo/dog/000.png 1", line])
    with pytest.raises(UserError, match=r"photo_train_kfold.txt: line 2 is"):
        PACS_SMALL.source("photo", tmp_path)
