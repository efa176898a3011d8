"""What every public data set promises, for all of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onedomain.data.datasets.base import Dataset, MissingData
from onedomain.data.datasets.catalogue import CATALOGUE, find_dataset
from onedomain.errors import UserError
from tests.conftest import SHARED

every_dataset = pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=list(CATALOGUE))
there = [dataset for dataset in CATALOGUE.values() if SHARED.is_dir() and dataset.find_all(SHARED)]


def test_the_catalogue() -> None:
    assert len(CATALOGUE) == len({dataset.name for dataset in CATALOGUE.values()}) > 10
    assert all(find_dataset(name).name == name for name in CATALOGUE)


@every_dataset
def test_what_is_missing_is_told_with_the_way_to_get_it(dataset: Dataset[Any], tmp_path: Path) -> None:
    for row in (dataset.list(tmp_path), dataset.check(tmp_path)):
        assert (row.name, row.what, row.state, row.counts) == (dataset.name, dataset.what, "missing", {})
        assert row.where == dataset.how_to_get()
    for part in dataset.parts:
        assert dataset.find(part, tmp_path) is None
        with pytest.raises(MissingData) as caught:
            dataset.load(part, tmp_path)
        line = str(caught.value)
        assert line.startswith("domain '")
        assert f"not found in {tmp_path}: " in line
        assert line.endswith(dataset.how_to_get(part))
        assert "\n" not in line


@every_dataset
def test_a_part_that_does_not_exist_is_refused_with_those_that_do(dataset: Dataset[Any], tmp_path: Path) -> None:
    for call in (dataset.find, dataset.load):
        with pytest.raises(UserError, match=f"part of {dataset.name}: 'nothing' is not known") as caught:
            call("nothing", tmp_path)
        assert all(part in str(caught.value) for part in dataset.parts)


@every_dataset
def test_what_cannot_be_prepared_says_what_to_do_and_leaves_nothing(dataset: Dataset[Any], tmp_path: Path) -> None:
    if getattr(dataset, "addresses", ()):
        return  # it is downloaded
    with pytest.raises(UserError, match=r"put |unpack |data prepare ") as caught:
        dataset.prepare(tmp_path, lambda _text, _fraction: None)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.rglob("*")) == []


@every_dataset
def test_a_file_that_is_not_as_published_is_called_broken(dataset: Dataset[Any], tmp_path: Path) -> None:
    home = tmp_path / dataset.home
    if home.suffix != ".npz":
        return  # a folder; what may be wrong in it is tested with its data set
    home.parent.mkdir(parents=True)
    home.write_bytes(b"damaged")
    row = dataset.check(tmp_path)
    assert (row.state, row.where) == ("broken", str(home))
    assert row.problems[0].startswith(f"{home}: cannot be read")


@pytest.mark.parametrize("dataset", there, ids=lambda dataset: dataset.name)
def test_what_is_there_is_loaded_as_a_domain(dataset: Dataset[Any]) -> None:
    row = dataset.list(SHARED)
    assert row.state == "present"
    part = next(iter(dataset.find_all(SHARED)))
    domain = dataset.load(part, SHARED)
    assert len(domain.batch([0]).images) == 1
    assert domain.fingerprint == dataset.load(part, SHARED).fingerprint
