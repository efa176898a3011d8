"""Each reader on small files in exactly the published form, whole and damaged."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedomain.data import formats
from onedomain.errors import UserError
from tests.data.published import DIGITS, EXPECTED, idx, refusal, write_h5, write_png


@pytest.mark.parametrize("write", EXPECTED, ids=lambda write: write.__name__)
def test_reads_the_published_form(write: Callable, tmp_path: Path) -> None:
    path, read = write(tmp_path)
    images, labels = read(path)
    np.testing.assert_array_equal(images, EXPECTED[write])
    np.testing.assert_array_equal(labels, DIGITS)
    assert images.dtype == np.uint8
    assert labels.dtype == np.int64


@pytest.mark.parametrize("write", EXPECTED, ids=lambda write: write.__name__)
def test_a_file_cut_off_anywhere_is_refused(write: Callable, tmp_path: Path) -> None:
    path, read = write(tmp_path)
    whole = path.read_bytes()
    end = len(whole) - (40 if write is write_png else 0)  # a PNG ends with marks and sums, no pixels
    for kept in (0, 1, 3, 7, 20, 127, 131, end // 3, end // 2, end - 9, end - 1):
        path.write_bytes(whole[:kept])
        refusal(lambda: read(path), tmp_path)


@pytest.mark.parametrize("write", EXPECTED, ids=lambda write: write.__name__)
def test_changed_bytes_never_end_in_another_error(write: Callable, tmp_path: Path) -> None:
    path, read = write(tmp_path)
    whole, rng, told = path.read_bytes(), np.random.default_rng(1), []
    for _ in range(40):
        changed = bytearray(whole)
        for place in rng.integers(0, min(len(whole), 400), 3):
            changed[place] = rng.integers(256)
        path.write_bytes(changed)
        try:
            read(path)
        except UserError as error:
            told.append(str(error))
    assert told
    assert not any("\n" in line for line in told)


@pytest.mark.parametrize("write", EXPECTED, ids=lambda write: write.__name__)
def test_a_file_that_is_not_there_is_named(write: Callable, tmp_path: Path) -> None:
    path, read = write(tmp_path)
    path.unlink()
    assert write is write_h5 or re.search("No such file|does not exist", refusal(lambda: read(path), path))


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 6), st.data())
def test_idx_round_trip(tmp_path_factory, n: int, height: int, width: int, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("idx")
    pixels = data.draw(st.binary(min_size=n * height * width, max_size=n * height * width))
    digits = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    images = np.frombuffer(pixels, np.uint8).reshape(n, height, width)
    pack = data.draw(st.sampled_from([bytes, gzip.compress]))
    (folder / "i").write_bytes(pack(idx(images)))
    (folder / "l").write_bytes(pack(idx(digits)))
    read_images, read_labels = formats.read_idx(folder / "i", folder / "l")
    np.testing.assert_array_equal(read_images, images)
    np.testing.assert_array_equal(read_labels, digits)
