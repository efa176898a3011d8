"""The rows of a table: a method each, how it is set, on which benchmarks it is run, and how it is adapted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onedomain.reporting.reproduce.paper import variant


@dataclass(frozen=True)
class Adapting:
    """What becomes of a row's trained runs: so many images per class of the target, and changed settings."""

    method: str
    shots: int
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A method, and the settings in which it differs from what the benchmark gives it."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    benchmark: str | None = None  # in a table of several; None: the table's
    tasks: tuple[str, ...] = ()  # benchmarks that it is run on, each by itself: its columns are called TASK/DOMAIN
    adaptation: Adapting | None = None  # of the trained run
    not_run: str = ""  # of a row with the paper's numbers alone: which images of the target it learned

    @property
    def key(self) -> str:
        """Under which the paper's numbers are found.

        >>> Row("SDG", "sdg", adaptation=Adapting("fine-tune", 7)).key
        'sdg>fine-tune-7'
        """
        trained, adapting = variant(self.method, self.settings), self.adaptation
        return f"{trained}>{variant(adapting.method, adapting.settings)}-{adapting.shots}" if adapting else trained

    @property
    def parts(self) -> tuple[Row, ...]:
        """Rows of one benchmark each, which are run."""
        return tuple(replace(self, benchmark=task, tasks=()) for task in self.tasks) or (self,)

    @property
    def trained(self) -> Row:
        """Whose runs are adapted."""
        return replace(self, adaptation=None)

    @property
    def shots(self) -> str:
        """Which images of the target were learned."""
        return str(self.adaptation.shots) if self.adaptation else self.not_run or "0"

    @property
    def name(self) -> str:
        """As a folder is called; rows of one name are one run.

        >>> Row("SDG without L_relax", "sdg", {"beta": 0.0}).name
        'sdg-beta-0'
        >>> Row("ERM", "erm", benchmark="synthia-fog").name
        'synthia-fog-erm'
        """
        plain = self.key.replace(":", "-").replace("=", "-").replace(",", "-").replace(">", "-")
        return f"{self.benchmark}-{plain}" if self.benchmark else plain

    def printed_in(self, table: str) -> str:
        """Where `paper.py` has its numbers: a table of several benchmarks has them under each of these."""
        return self.benchmark or table
