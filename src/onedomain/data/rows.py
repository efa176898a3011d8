"""A line of `onedomain data list` and `check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One data set: what it is, whether it is there, and what is wrong with it."""

    name: str
    what: str
    state: str  # list: present, missing; check: whole, partial, broken, missing
    where: str  # the files, or what to do where they are missing
    counts: Mapping[str, int]  # images a split, where known
    problems: tuple[str, ...] = ()  # what is not as published, a line each

    @property
    def ok(self) -> bool:
        """Whether the benchmark can use it."""
        return self.state in ("present", "whole", "partial")
