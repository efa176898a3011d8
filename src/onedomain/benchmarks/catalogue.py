"""All benchmarks by name: those of this room's files, of other packages, and of a file of the user's own."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections import UserDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from onedomain.benchmarks.benchmark import Benchmark
from onedomain.data.registry import installed, load
from onedomain.errors import OnedomainError, UserError, unknown

PACKAGE = "onedomain.benchmarks"
FIRST = "digits"  # the file whose benchmarks are listed first: one of them needs no data
FILE = "FILE.py"  # stands for a file of the user's own in a list of what is allowed


class Catalogue(UserDict[str, Benchmark]):
    """Benchmarks by name. One that another package declares is imported when it is asked for.

    A file of this room declares its benchmarks as `BENCHMARKS`. Another package declares an entry point of the group
    `onedomain.benchmarks` that stands for a `Benchmark`.
    """

    def __init__(self) -> None:
        super().__init__()
        modules = pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__)
        files = [module.name for module in modules if not module.ispkg]
        files.remove("catalogue")
        for file in sorted(files, key=lambda name: (name != FIRST, name)):
            declared = getattr(importlib.import_module(f"{PACKAGE}.{file}"), "BENCHMARKS", ())
            self.data.update({benchmark.name: benchmark for benchmark in declared})

    def __missing__(self, name: str) -> Benchmark:
        entry = installed(PACKAGE)[name]  # a KeyError, as of any mapping
        found = load(entry, PACKAGE)
        if not (isinstance(found, Benchmark) and found.name == name):
            raise OnedomainError(f"benchmark: {entry.value} is no Benchmark called {name!r}")
        self.data[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.data, *installed(PACKAGE)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


BENCHMARKS = Catalogue()


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of a name, or the one that a Python file declares: `FILE.py`, of several `FILE.py:NAME`.

    The file is run: `name` must be the user's own word, and nothing that a run folder says.
    """
    tasks = family_of(name)
    if tasks:
        raise UserError("benchmark", f"{name!r} is {len(tasks)} tasks", ", ".join(task.name for task in tasks))
    file, _, chosen = name.partition(":")
    if file.endswith(".py"):
        return _from_file(Path(file), chosen)
    return known_benchmark(name)


def known_benchmark(name: str) -> Benchmark:
    """The benchmark of a name. No file is run for it: a run folder may be a stranger's."""
    if name not in BENCHMARKS:
        raise unknown("benchmark", name, [*BENCHMARKS, FILE])
    return BENCHMARKS[name]


def _from_file(path: Path, chosen: str) -> Benchmark:
    """A benchmark of a file of the user's own, which the catalogue then knows."""
    declared = _declared_in(path.resolve())
    if not chosen and len(declared) > 1:
        names = ", ".join(f"{path}:{name}" for name in declared)
        raise UserError("benchmark", f"{path} declares {len(declared)}", names)
    if chosen and chosen not in declared:
        raise unknown("benchmark", chosen, declared)
    found = declared[chosen or next(iter(declared))]
    if BENCHMARKS.get(found.name, found) is not found:
        raise UserError("benchmark", f"{path} calls its own {found.name!r}, which there is already", "another name")
    BENCHMARKS[found.name] = found
    return found


@cache  # a file is run once
def _declared_in(path: Path) -> dict[str, Benchmark]:
    if not path.is_file():
        raise UserError("benchmark", f"{path} is not a file", f"a name, or {FILE} that declares an od.Benchmark")
    spec = importlib.util.spec_from_file_location(f"onedomain_benchmark_{path.stem}", path)
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:  # whatever the user's own code raises
        reason = " ".join(str(error).split())[:100]
        raise UserError("benchmark", f"{path} ends in {type(error).__name__} ({reason})", "a file that runs") from error
    declared = {each.name: each for each in vars(module).values() if isinstance(each, Benchmark)}
    if not declared:
        raise UserError("benchmark", f"{path} declares none", "a file with an od.Benchmark(name=…, train=…, targets=…)")
    return declared


def family_of(name: str) -> list[Benchmark]:
    """The benchmarks that one table reports together under this name."""
    return [benchmark for benchmark in BENCHMARKS.values() if name and benchmark.family == name]


def find_target(name: str, first: Benchmark | None) -> Benchmark | None:
    """The benchmark that has a target of this name, `first` before the others; None if none has."""
    return next((b for b in [*([first] if first else []), *BENCHMARKS.values()] if name in b.targets), None)
