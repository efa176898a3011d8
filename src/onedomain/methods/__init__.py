"""The methods: one file each, found by its name. `uncertain_sdg.py` is the method `uncertain-sdg`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from onedomain.errors import unknown

if TYPE_CHECKING:
    from onedomain.methods.base import Method


def method_names() -> list[str]:
    """All methods, without importing any (nor torch)."""
    files = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted(name.replace("_", "-") for name in files if name != "base")


def method_class(name: str) -> type[Method]:
    """The class of the method called `name`."""
    from onedomain.methods.base import Method

    if name not in method_names():
        raise unknown("method", name, method_names())
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    [found] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module.__name__
    ]
    return found
