"""The published constants stand twice, in the code and in the table of docs/corruptions.md: neither changes alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from onedomain.data.corruptions import KINDS
from onedomain.data.corruptions.constants import CIFAR10_C

DOCUMENT = Path(__file__).parents[3] / "docs" / "corruptions.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def documented() -> dict[str, list[list[float]]]:
    """By corruption, the numbers of each severity; liquid and mud are 0 and 1, as the code has them."""
    found = {}
    constants = DOCUMENT.read_text(encoding="utf-8").partition("## Constants")[2].partition("\n## ")[0]
    for line in constants.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("`"):
            levels = [cell.replace("water", ", 0").replace("mud", ", 1") for cell in cells[2:]]
            found[cells[0].strip("`")] = [[float(number) for number in NUMBER.findall(level)] for level in levels]
    return found


def in_code(kind: str) -> list[list[float]]:
    """The same of the code, in the document's terms: what is the same at every severity stands in words there."""
    levels: list[Any] = [level if isinstance(level, tuple) else (level,) for level in CIFAR10_C[kind]]
    said_in_words = {"frost": 0.2, "zoom-blur": 0.01}  # overlays at a fifth of their size; by steps of 0.01
    if kind in said_in_words:
        assert {level[-1] for level in levels} == {said_in_words[kind]}
        levels = [level[:-1] for level in levels]
    times = 32 if kind == "elastic-transform" else 1
    return [[value / times for value in level] for level in levels]


def test_the_document_has_every_corruption() -> None:
    assert set(documented()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_code_and_document_have_the_same_constants(kind: str) -> None:
    written, used = documented()[kind], in_code(kind)
    assert len(written) == len(used) == 5
    for theirs, ours in zip(written, used, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)
