"""What a benchmark is: a source, its unseen targets, a network, and the settings of each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedomain.errors import UserError

if TYPE_CHECKING:
    from onedomain.data.domain import Domain

Loader = Callable[[Path], "Domain"]  # from the data folder to a domain
Settings = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One protocol: a declaration.

    `train` is the source. `held_out` are images of the source domain that training never sees, to score; `calibration`
    are such images that `out_of_domain` rests on, and without them a part of the source is set aside for that. `recipe`
    has the settings that are usual here for every method, also for one that the benchmark does not know, and `settings`
    what is usual for some methods beyond that. `recipes` has by name and method what a method's recipe of that name
    needs here beyond the form that the method gives it, such as a rate and steps.
    """

    name: str
    train: Loader
    targets: Mapping[str, Loader]
    summary: str = ""
    source: str = "source"
    network: str = ""  # empty: the one that suits the data
    held_out: Loader | None = None
    calibration: Loader | None = None
    recipe: Settings = field(default_factory=dict)
    settings: Mapping[str, Settings] = field(default_factory=dict)
    recipes: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    trained_on_by: tuple[str, ...] = ()  # benchmarks whose training images are among the ones scored here
    of_source: bool = False  # whether the targets are changed copies of source images
    metric: str = "accuracy"  # what its tables show first
    corruptions: bool = False  # whether the targets are corruptions × severities, as in `robustness`
    target_train: Mapping[str, Loader] = field(default_factory=dict)  # what few shots are drawn from
    family: str = ""  # of tasks that one table reports together

    def settings_of(self, method: str) -> dict[str, Any]:
        """What is usual here for a method."""
        return {**self.recipe, **self.settings.get(method, {})}

    def recipes_of(self, method: str, forms: Mapping[str, Settings]) -> dict[str, dict[str, Any]]:
        """The recipes that a method has here by name, beside what is usual; `forms` are those that it brings itself."""
        here = {name: of[method] for name, of in self.recipes.items() if method in of}
        return {name: {**forms.get(name, {}), **here.get(name, {})} for name in {**forms, **here}}

    def refuse_trained_on(self, trained: str | None, option: str) -> None:
        """Images that a run of the benchmark `trained` learned are not unseen, nor are copies of them."""
        if trained in self.trained_on_by:
            given = f"its digits are among the training images of a {trained} run"
            raise UserError(option, given, "a benchmark whose images this run has not seen")

    def load_for_scoring(self, data: Path) -> tuple[dict[str, Domain], list[str]]:
        """Held-out source and targets, and the reasons for those that are missing: the others still count."""
        domains: dict[str, Domain] = {}
        missing: list[str] = []
        home = {} if self.held_out is None else {self.source: self.held_out}
        for name, load in {**home, **self.targets}.items():
            try:
                domains[name] = load(data)
            except UserError as error:  # missing or broken
                if str(error) not in missing:  # five severities may lie in one file
                    missing.append(str(error))
        if not any(name in domains for name in self.targets):
            raise UserError(f"benchmark {self.name}", f"no unseen domain is there ({missing[-1]})")
        return domains, missing
