"""Few-shot adaptation of a trained run to a new domain: one file a method, as `fine_tune.py` is `fine-tune`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from onedomain.errors import unknown

if TYPE_CHECKING:
    from onedomain.methods.adapt.base import Adaptation

_CLASSES = {"fine-tune": "FineTune", "fada": "FADA", "ccsa": "CCSA"}


def adaptation_names() -> list[str]:
    """All of them, the usual one first, without importing any (nor torch)."""
    return list(_CLASSES)


def adaptation_class(name: str) -> type[Adaptation]:
    """The class of the adaptation called `name`."""
    if name not in _CLASSES:
        raise unknown("method", name, _CLASSES)
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    found: type[Adaptation] = getattr(module, _CLASSES[name])
    return found
