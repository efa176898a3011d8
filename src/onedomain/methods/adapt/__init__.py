"""Adaptations of a trained run to a new domain: one file each, as `fine_tune.py` is `fine-tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedomain.data.registry import Registry

if TYPE_CHECKING:
    from onedomain.methods.adapt.base import Adaptation

ADAPTATIONS: Registry[Adaptation] = Registry("method", "onedomain.methods.adapt", "Adaptation")
USUAL = "fine-tune"  # the default


def adaptation_names() -> list[str]:
    """All of them, the usual one first, without importing any (nor torch)."""
    return [USUAL, *(name for name in ADAPTATIONS.names() if name != USUAL)]


def adaptation_class(name: str) -> type[Adaptation]:
    return ADAPTATIONS.find(name)
