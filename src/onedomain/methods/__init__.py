"""The methods: one file each, as `uncertain_sdg.py` is `uncertain-sdg`, or an entry point of another package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedomain.data.registry import Registry

if TYPE_CHECKING:
    from onedomain.methods.base import Method

METHODS: Registry[Method] = Registry("method", "onedomain.methods", "Method")


def method_names() -> list[str]:
    """All methods, those of other packages included, without importing any (nor torch)."""
    return METHODS.names()


def method_class(name: str) -> type[Method]:
    return METHODS.find(name)
