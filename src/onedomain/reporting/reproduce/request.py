"""A table as it is asked for: its scale and seeds, and where and how its runs are made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onedomain.errors import UserError
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.plan import Bench, PlannedRun, plan
from onedomain.reporting.sweep import cores


@dataclass(frozen=True)
class Request:
    """What is asked for: a table at a scale, its seeds, and where and how its runs are made."""

    table: Table
    scale: Scale
    seeds: int = 3
    out: str | None = None
    jobs: int | None = None
    use: tuple[str, ...] = ()
    data: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        table, scale = self.table.at(self.scale)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "scale", scale)
        for option, number in (("--seeds", self.seeds), ("--jobs", self.jobs)):
            if number is not None and number < 1:
                raise UserError(option, f"got {number}", "a whole number from 1")
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError("--out", f"{self.folder} is a file", "a folder, there or not")

    @property
    def folder(self) -> Path:
        return Path(self.out or f"runs/reproduce/{self.table.name}-{self.scale.name}")

    @property
    def parallel(self) -> int:
        return self.jobs or cores()

    def as_typed(self, records: Sequence[str] = ()) -> str:
        """The command that makes the same table anywhere: where data and runs are is not part of it."""
        seeds = ("--seeds", str(self.seeds)) if not records else ()
        files = (word for file in records for word in ("--from", file))
        return shlex.join(["onedomain", "reproduce", self.table.name, "--scale", self.scale.name, *seeds, *files])

    def to_go_on(self) -> str:
        """The command that goes on here."""
        given = {"--out": self.out, "--jobs": self.jobs, "--data": self.data, "--device": self.device}
        options = [*given.items(), *(("--use", folder) for folder in self.use)]
        words = [str(word) for option, value in options if value for word in (option, value)]
        return " ".join([self.as_typed(), shlex.join(words)]) if words else self.as_typed()

    def plan(self, benches: Mapping[str, Bench]) -> list[PlannedRun]:
        return plan(self.table, self.scale, self.seeds, self.folder, benches, self.use)
