"""What every public data set can do: find its files, load its domains, tell whether it is whole, prepare it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from onedomain.data.domain import Domain
from onedomain.errors import UserError, unknown

Folder = str | os.PathLike[str]
Progress = Callable[[str, float], None]  # what is being done, and how much of it, 0 to 1
STATES = ("whole", "partial", "broken")  # from good to bad


class MissingData(UserError):
    """A domain whose files are not there; the others can still be read."""


@dataclass
class Row:
    """One line of `onedomain data list` and `check`."""

    name: str
    what: str
    state: str  # list: present, missing, broken; check: whole, partial, broken, missing
    where: str  # the files, or what to do where they are missing
    counts: dict[str, int] = field(default_factory=dict)  # images per split, where known
    problems: list[str] = field(default_factory=list)  # what is not as published, one line each

    def add(self, problem: str, state: str = "partial") -> None:
        """Note a problem, and how bad it is."""
        self.problems.append(problem)
        self.state = max(self.state, state, key=STATES.index)

    def compare(self, part: str, published: int, state: str = "partial") -> None:
        """Compare how many images a part has with how many were published."""
        count = self.counts.get(part, 0)
        if count != published:
            self.add(f"{part}: {of_images(count, published)}", state)


def of_images(count: int, wanted: int) -> str:
    return f"{count:,} of {wanted:,} images"


def note_if_fewer(count: int, wanted: int) -> str:
    """The note of a domain that has fewer images than it should."""
    return "" if count == wanted else of_images(count, wanted)


@dataclass(frozen=True)
class Found:
    """The files, or the folder, of one part of a data set."""

    paths: tuple[Path, ...]


F = TypeVar("F", bound=Found)


@dataclass(frozen=True, kw_only=True)
class Dataset(ABC, Generic[F]):
    name: str
    what: str
    counts: Mapping[str, int | None]  # images of each part, as published; None where that is not known
    get: str = "run: onedomain data prepare {name}"  # what to do where a {split} is missing
    home: str  # where its file or folder belongs, below the data folder

    @property
    def parts(self) -> tuple[str, ...]:
        """What can be loaded: splits, or domains."""
        return tuple(self.counts)

    @abstractmethod
    def load(self, part: str, data_dir: Folder) -> Domain:
        """One part as a domain, in the order in which it is published."""

    @abstractmethod
    def _find(self, part: str, data_dir: Path) -> F | None:
        """The files of a part, if all of them are there."""

    @abstractmethod
    def _looked_for(self, part: str) -> str:
        """Which files were looked for, and where."""

    def _count(self, data_dir: Path, found: Mapping[str, F], row: Row) -> None:
        """What `list` tells of the files: quick, no image is read."""

    def _check(self, data_dir: Path, found: Mapping[str, F], row: Row) -> None:
        """Read every image and compare it with what is published."""
        for part, published in self.counts.items():
            row.counts[part] = len(self.load(part, data_dir)) if part in found else 0
            if published is not None:
                row.compare(part, published)

    def _title(self, part: str) -> str:
        """What messages call a part."""
        return f"domain '{self.name}' ({part})"

    def _where(self, data_dir: Path, found: Mapping[str, F]) -> str:
        """What `list` and `check` say of where the files are."""
        return ", ".join(dict.fromkeys(str(path) for files in found.values() for path in files.paths))

    def find(self, part: str, data_dir: Folder) -> F | None:
        """The files that `load` would read, or None if some are missing."""
        if part not in self.parts:
            raise unknown(f"part of {self.name}", part, self.parts)
        return self._find(part, Path(data_dir))

    def require(self, part: str, data_dir: Folder) -> F:
        """The files that `load` would read."""
        found = self.find(part, data_dir)
        if found is None:
            problem = f"not found in {Path(data_dir)}: {self._looked_for(part)}; {self.how_to_get(part)}"
            raise MissingData(self._title(part), problem)
        return found

    def find_all(self, data_dir: Folder) -> dict[str, F]:
        found = {part: self.find(part, data_dir) for part in self.parts}
        return {part: files for part, files in found.items() if files}

    def how_to_get(self, part: str = "test") -> str:
        """What to do where a part is missing."""
        return self.get.format(name=self.name, split=part)

    def list(self, data_dir: Folder) -> Row:
        return self._row(Path(data_dir), checked=False)

    def check(self, data_dir: Folder) -> Row:
        """Whether it is whole and as published."""
        return self._row(Path(data_dir), checked=True)

    def _row(self, data_dir: Path, checked: bool) -> Row:
        row = Row(self.name, self.what, "whole", str(data_dir / self.home))
        try:
            found = self.find_all(data_dir)
            if not found:
                row.state, row.where = "missing", self.how_to_get()
                return row
            row.where = self._where(data_dir, found)
            (self._check if checked else self._count)(data_dir, found, row)
        except UserError as error:
            row.state, row.problems = "broken", [str(error)]
            return row
        if not checked:
            row.state = "present"
        return row

    def prepare(self, data_dir: Folder, tell: Progress) -> str:
        """Fetch or convert it; returns the line that tells what was done."""
        raise UserError(self.name, "is read as it is published, and has no direct public address", self.get)


class InOnePlace(Dataset[Found]):
    """A data set of which each part is one file or folder."""

    def _places(self, part: str) -> tuple[str, ...]:
        """Where a part may lie, below the data folder."""
        return (self.home,)

    def path(self, part: str, data_dir: Folder) -> Path:
        return self.require(part, data_dir).paths[0]

    def _find(self, part: str, data_dir: Path) -> Found | None:
        paths = (data_dir / place for place in self._places(part))
        return next((Found((path,)) for path in paths if path.exists()), None)

    def _looked_for(self, part: str) -> str:
        return f"no {' or '.join(self._places(part))}"
