"""What a table is: a declaration of rows, columns and scales. Nothing here runs anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onedomain.reporting.reproduce.columns import Column
from onedomain.reporting.reproduce.paper import variant

PARENT_SEED = 0  # of the trained runs that draws are adapted from


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
    recipe: str = ""  # that its settings differ from, and what that sets; empty: what is usual
    recipe_settings: Mapping[str, Any] = field(default_factory=dict)
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
        plain = f"{plain}-{Path(self.recipe).stem}" if self.recipe else plain
        return f"{self.benchmark}-{plain}" if self.benchmark else plain


@dataclass(frozen=True)
class Scale:
    """How much of the protocol is run: a share of each method's steps, and what else is made smaller, by method."""

    name: str
    share: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    network: str = ""  # in the place of the benchmark's
    benchmark: str = ""  # in the place of the table's, for rows that name none
    note: str = ""  # what is reduced; empty for the whole protocol

    @property
    def reduced(self) -> bool:
        return bool(self.note)

    def changes(
        self,
        method: str,
        settings: Mapping[str, Any],
        usual_steps: int | None,
        recipe: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What differs from the usual settings of a row's method; no `usual_steps`: the scale leaves them as they are.

        A scale shares the steps of the row's recipe, if that has some.

        >>> Scale("quick", 0.1, {"sdg": {"domain_size": 1000}}).changes("sdg", {"beta": 0.0}, 600)
        {'steps': 60, 'domain_size': 1000, 'beta': 0.0}
        """
        recipe = recipe or {}
        whole = recipe.get("steps", usual_steps) if usual_steps is not None else None
        steps = {"steps": max(1, round(self.share * whole))} if self.share < 1 and whole is not None else {}
        return {**recipe, **steps, **self.settings.get(method, {}), **settings}


@dataclass(frozen=True)
class Table:
    """One table: methods on a benchmark, and what is reported of them. The paper's numbers are in `paper.py`."""

    name: str
    title: str
    benchmark: str  # of the rows that name no other
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    metric: str = "accuracy"
    notes: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()  # its own, in the place of the common ones of the same name

    def benchmark_of(self, row: Row) -> str:
        return row.benchmark or self.benchmark

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Those of its rows, each once, in their order."""
        return tuple(dict.fromkeys(map(self.benchmark_of, self.grid)))

    @property
    def grid(self) -> tuple[Row, ...]:
        """What is run: rows of one benchmark each, once, and before those that are adapted what they come from."""
        parts = [part for row in self.rows if not row.not_run for part in row.parts]
        return tuple({row.name: row for row in (*(part.trained for part in parts), *parts)}.values())

    @property
    def few_shot(self) -> bool:
        return any(row.adaptation for row in self.rows)

    def seeds_of(self, row: Row, seeds: Sequence[int]) -> tuple[int, ...]:
        """Where runs are adapted, seeds are those of the draws, and all draws share one trained run."""
        return (PARENT_SEED,) if self.few_shot and row.adaptation is None else tuple(seeds)

    def at(self, scale: Scale) -> tuple[Table, Scale]:
        """The table and the scale as it is run at it: maybe on another benchmark, which its title then says."""
        own = next((each for each in self.scales if each.name == scale.name), scale)
        if own.benchmark in ("", self.benchmark):
            return self, own
        return replace(self, benchmark=own.benchmark, title=f"{self.title}, on {own.benchmark}"), own
