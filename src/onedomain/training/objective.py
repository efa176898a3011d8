"""What settings are chosen by: a part of the source that training never sees, changed in ways that are generated.

Nothing here knows a target. The part is the same for every run on the same source, whatever its seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from onedomain.data.domain import Domain
from onedomain.data.generated.shifted import shifted
from onedomain.data.progress import tell_score
from onedomain.errors import UserError, unknown
from onedomain.evaluation.scores import Evaluation
from onedomain.networks.distributed import place
from onedomain.training.run import Run

SHIFTED, AUGMENTED = "generated-shifts", "held-out-augmentations"
OBJECTIVES = (SHIFTED, AUGMENTED)
CATEGORIES = {
    "colour": ("inverted", "low-contrast", "coloured"),
    "texture": ("noisy", "textured"),
    "shape": ("reshaped",),
}
SHARE, MOST, FEWEST = 0.2, 1000, 10  # of the source that is held out
MOST_VALUES = 2**27  # of all held-out images together
OTHER_SEED = 1  # of the changes that are trained on: other colours, turns and so on than of those to judge by
MOMENTS, FEW = (0.25, 0.5, 0.75), 200  # of training, by share, when so many held-out images are looked at
HOME = "held out"  # what the unchanged images are called


@dataclass(frozen=True)
class Objective:
    """A way to judge settings; of several folds the one whose `category` is held out."""

    name: str
    category: str = ""

    @property
    def text(self) -> str:
        return f"{self.name}:{self.category}" if self.category else self.name

    def folds(self, dense: bool) -> list[Objective]:
        """The runs that one score is the mean of."""
        return [self] if self.name == SHIFTED else [replace(self, category=each) for each in _categories(dense)]


def parse_objective(text: str, targets: Iterable[str] = ()) -> Objective:
    """The objective of a text such as `held-out-augmentations:shape`; a benchmark's target is none.

    >>> parse_objective("held-out-augmentations:shape").category
    'shape'
    """
    name, _, category = text.partition(":")
    if name not in OBJECTIVES:
        if name in [*targets, "target", "targets"]:
            given = f"{text!r} is a target, and settings are never chosen by one"
            raise UserError("--objective", given, ", ".join(OBJECTIVES))
        raise unknown("--objective", text, OBJECTIVES)
    if category and (name == SHIFTED or category not in CATEGORIES):
        allowed = CATEGORIES if name == AUGMENTED else []
        raise unknown("--objective", text, [name, *(f"{name}:{each}" for each in allowed)])
    return Objective(name, category)


def divide(source: Domain, objective: Objective) -> tuple[Domain, dict[str, Domain]]:
    """What to train on, and the domains to judge by, the unchanged held-out images first."""
    if objective.name == AUGMENTED and not objective.category:
        given = f"{objective.name} is several runs"
        raise UserError("--objective", given, ", ".join(each.text for each in objective.folds(source.dense)))
    if source.dense and objective.category == "shape":
        raise UserError("--objective", f"{objective.text} would move images away from their masks", "another category")
    height, width, channels = source.image_shape
    most = max(FEWEST, MOST_VALUES // (height * width * channels))
    count = min(MOST, most, int(SHARE * len(source)))
    if count < FEWEST:
        raise UserError("source", f"has {len(source)} images", f"at least {int(FEWEST / SHARE)}: some are held out")
    order = np.random.default_rng([0, len(source)]).permutation(len(source))
    if not source.dense:  # an image of every class is trained on
        needed = np.unique(source.labels[order], return_index=True)[1]
        order = np.concatenate([np.delete(order, needed), order[needed]])
    kept, others = source.subset(np.sort(order[:count]), HOME), source.subset(np.sort(order[count:]))
    if kept.images[np.arange(1)].dtype != np.uint8:
        raise UserError("source", "images are not bytes", "images from 0 to 255, which can be shifted")
    categories = _categories(source.dense)
    judged = categories[objective.category] if objective.category else sum(categories.values(), ())
    if objective.category:
        trained = sum((shifts for name, shifts in categories.items() if name != objective.category), ())
        others = _augmented(others, trained)
    return others, {HOME: replace(kept, name=HOME), **{name: shifted(kept, name) for name in judged}}


class Judge:
    """The score of a run at some moments of its training and at its end, told to whoever watches."""

    def __init__(self, judged: Mapping[str, Domain], steps: int) -> None:
        self.judged, self.steps = judged, steps
        self.moments = {max(1, round(share * steps)) for share in MOMENTS} - {steps}

    def after_step(self, run: Run, done: int) -> None:
        if done in self.moments:
            few = {name: _some(domain) for name, domain in self.judged.items() if name != HOME}
            self._tell(done, run.evaluate(few))

    def finally_of(self, run: Run) -> Evaluation:
        evaluation = run.evaluate(self.judged, seen=[HOME], progress=True)
        self._tell(self.steps, evaluation)
        return evaluation

    def _tell(self, done: int, evaluation: Evaluation) -> None:
        if place() == 0:  # of several processes one speaks for all
            tell_score(done, self.steps, _mean(evaluation))


def _some(domain: Domain) -> Domain:
    """From all over it: images may be sorted by class."""
    return domain.subset(np.linspace(0, len(domain) - 1, min(len(domain), FEW)).astype(np.int64))


def _mean(evaluation: Evaluation) -> float:
    """The plain mean over the changed images; of segmentation it is the mIoU."""
    dense = any(scores.miou is not None for scores in evaluation.scores.values())
    return evaluation.average("miou" if dense else "accuracy")


def _categories(dense: bool) -> dict[str, tuple[str, ...]]:
    """Masks would have to move along with images that are reshaped."""
    return {name: shifts for name, shifts in CATEGORIES.items() if not (dense and name == "shape")}


def _augmented(domain: Domain, shifts: tuple[str, ...]) -> Domain:
    """Each image as it is, and once more under one of the shifts."""
    whole = np.arange(len(domain))
    parts = [domain.subset(whole[place :: len(shifts)]) for place in range(len(shifts))]
    changed = [shifted(part, name, OTHER_SEED) for part, name in zip(parts, shifts, strict=True)]
    images = np.concatenate([np.asarray(domain.images[whole]), *(np.asarray(each.images) for each in changed)])
    labels = np.concatenate([domain.labels[whole], *(each.labels[np.arange(len(each))] for each in changed)])
    return replace(domain, images=images, labels=labels)
