"""The methods: one file each, found by its name. `uncertain_sdg.py` is the method `uncertain-sdg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedomain.methods.registry import METHODS

if TYPE_CHECKING:
    from onedomain.methods.base import Method


def method_names() -> list[str]:
    """All methods, those of other packages included, without importing any (nor torch)."""
    return METHODS.names()


def method_class(name: str) -> type[Method]:
    """The class of the method called `name`."""
    return METHODS.find(name)
