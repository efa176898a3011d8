"""Which networks there are: declared in the files of this room, or by entry points of other packages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from torch import nn

from onedomain.data.registry import installed, load
from onedomain.errors import UserError, unknown

PACKAGE = "onedomain.networks"
Built = TypeVar("Built", bound=nn.Module)


# Makes a network for a number of classes and images of (height, width, channels): a module that names its layers.
Build = Callable[[int, tuple[int, int, int]], Any]
_DECLARED: dict[str, Build] = {}


def network(name: str, **settings: Any) -> Callable[[type[Built]], type[Built]]:
    """Declare the class below as a network that can be chosen by name, with some of its arguments given."""

    def declare(kind: type[Built]) -> type[Built]:
        _DECLARED[name] = partial(kind, **settings)
        return kind

    return declare


def refuse_smaller(smallest: int, name: str, image_shape: Sequence[int]) -> None:
    """Refuse images of which a network's layers would leave nothing."""
    height, width, _ = image_shape
    if min(height, width) < smallest:
        raise UserError("network", f"{name} cannot take {height}×{width} images", f"{smallest}×{smallest} or larger")


def network_names() -> list[str]:
    return sorted({*_declared(), *installed(PACKAGE)})


def find_network(name: str) -> Build:
    """What makes the network of this name; a UserError names those that there are."""
    declared, there = _declared(), installed(PACKAGE)
    if name not in declared and name not in there:
        raise unknown("network", name, network_names())
    found: Build = declared[name] if name in declared else load(there[name], PACKAGE)
    return found


def _declared() -> dict[str, Build]:
    for module in pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__):
        importlib.import_module(f"{PACKAGE}.{module.name}")
    return _DECLARED
