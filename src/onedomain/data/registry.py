"""Things that are chosen by name: each a class in a file of its own, or an entry point of another package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from onedomain.errors import OnedomainError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """The classes of one kind, by name. To list the names imports none of them.

    The file `uncertain_sdg.py` of `package` holds `uncertain-sdg`: the one class of that file which is a `base`, as the
    package's `base.py` has it. Another package adds its own by an entry point of the group `package`, such as
    `their-method = "their_package:TheirMethod"` in the group `onedomain.methods`.
    """

    def __init__(self, kind: str, package: str, base: str) -> None:
        self.kind, self.package, self.base = kind, package, base

    def names(self) -> list[str]:
        return sorted({*self._files(), *installed(self.package)})

    def own(self) -> list[type[T]]:
        """The classes of the library itself."""
        return [self.find(name) for name in self._files()]

    def find(self, name: str) -> type[T]:
        """The class of this name; a UserError names those that there are."""
        if name in self._files():
            module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
            [found] = [value for value in vars(module).values() if self._is_one(value, module.__name__)]
            return cast("type[T]", found)
        there = installed(self.package)
        if name not in there:
            raise unknown(self.kind, name, self.names())
        found = load(there[name], self.package)
        if not self._is_one(found, None):
            given = f"{name!r}, {there[name].value}, is no {self.base}"
            raise OnedomainError(f"{self.kind}: {given}; the package that installed it must be mended")
        return cast("type[T]", found)

    def name_of(self, kind: type[Any]) -> str:
        """By which name a class is found; its own name if it is in no registry."""
        package, _, file = kind.__module__.rpartition(".")
        if package == self.package:
            return file.replace("_", "-")
        where = f"{kind.__module__}:{kind.__qualname__}"
        named = (name for name, entry in installed(self.package).items() if entry.value.replace(" ", "") == where)
        return next(named, kind.__name__)

    def _files(self) -> list[str]:
        paths = importlib.import_module(self.package).__path__
        files = (module.name for module in pkgutil.iter_modules(paths) if not module.ispkg)
        return [name.replace("_", "-") for name in files if name not in ("base", "registry")]

    def _is_one(self, value: Any, module: str | None) -> bool:
        base = getattr(importlib.import_module(f"{self.package}.base"), self.base)
        return isinstance(value, type) and issubclass(value, base) and module in (None, value.__module__)


def installed(group: str) -> Mapping[str, EntryPoint]:
    """The entry points that installed packages declare in a group, by name."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load(entry: EntryPoint, group: str) -> Any:
    """What an entry point stands for. A package that cannot be imported is named, not told by a traceback."""
    try:
        return entry.load()
    except Exception as error:  # whatever the import of a stranger's module raises
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise OnedomainError(f"{group}: {entry.name!r} ({entry.value}) cannot be imported ({reason})") from error
