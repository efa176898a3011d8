"""What adapting gave: a run for each draw, and every domain's scores before and after, on the same images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from onedomain.data.domain import Domain
from onedomain.data.files import to_json_lines, write_atomically
from onedomain.data.folders import SECONDS_TO_WAIT, sole_use
from onedomain.evaluation.scores import Evaluation, Scores
from onedomain.runs.layout import BEFORE

if TYPE_CHECKING:
    from onedomain.training.run import Run


@dataclass(frozen=True)
class Draw:
    """One draw of images: the run that was adapted to them, and the scores of each domain, of the parent and of it."""

    run: Run
    before: dict[str, Scores] = field(repr=False)
    after: dict[str, Scores] = field(repr=False)


@dataclass(frozen=True)
class Change:
    """A metric of one domain before and after adapting, of every draw."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def mean_before(self) -> float:
        return fmean(self.before)

    @property
    def mean_after(self) -> float:
        return fmean(self.after)

    @property
    def gain(self) -> float:
        """After minus before; below 0 is forgetting."""
        return self.mean_after - self.mean_before

    @property
    def deviation(self) -> float | None:
        """The standard deviation over draws of the values after adapting; None for a single draw."""
        return stdev(self.after) if len(self.after) > 1 else None


@dataclass(frozen=True)
class Adapted:
    """Runs adapted to one target; `notes` say what a reader must know, and why something was not measured.

    `source` names the row of the source's held-out images; None if there were none to score.
    """

    target: str
    source: str | None
    draws: tuple[Draw, ...]
    notes: tuple[str, ...] = ()

    @property
    def run(self) -> Run:
        """The run of the first draw."""
        return self.draws[0].run

    @property
    def domains(self) -> tuple[str, ...]:
        """What was scored: the target, if it has images to score, and the source."""
        return tuple(dict.fromkeys(name for draw in self.draws for name in draw.after))

    @property
    def metric(self) -> str:
        """The metric that is shown: accuracy, or mIoU for segmentation."""
        return "miou" if self.run.manifest.source.dense else "accuracy"

    def change(self, domain: str, metric: str | None = None) -> Change:
        """Before and after on one of `domains`, by `self.metric` or another."""
        metric = metric or self.metric
        pairs = [(draw.before[domain], draw.after[domain]) for draw in self.draws if domain in draw.after]
        before = tuple(float(getattr(old, metric)) for old, _ in pairs)
        return Change(before, tuple(float(getattr(new, metric)) for _, new in pairs))

    def summary(self) -> dict[str, Any]:
        """All of it as JSON values."""
        rows = {}
        for domain in self.domains:
            change = self.change(domain)
            scores = next(draw.after[domain] for draw in self.draws if domain in draw.after)
            rows[domain] = {
                "source": domain == self.source,
                "split": scores.split,
                "count": scores.count,
                "note": scores.note,
                "before": change.mean_before,
                "after": change.mean_after,
                "deviation": change.deviation,
                "gain": change.gain,
                "draws": [{"before": old, "after": new} for old, new in zip(change.before, change.after, strict=True)],
            }
        info = self.run.manifest.adaptation
        told = {} if info is None else info.model_dump(mode="json", exclude={"images", "before", "draw"})
        return {
            **told,
            "metric": self.metric,
            "domains": rows,
            "draws": [
                {
                    "seed": draw.run.manifest.adaptation.draw if draw.run.manifest.adaptation else None,
                    "run": None if draw.run.folder is None else str(draw.run.folder),
                    "seconds": round(draw.run.seconds, 1),
                }
                for draw in self.draws
            ],
            "notes": list(self.notes),
        }


def before_and_after(
    parent: Run,
    adapted: Run,
    domains: Mapping[str, Domain | None],
    benchmarks: Mapping[str, str | None],
    done: dict[tuple[str, str], Evaluation],
    progress: bool,
) -> Draw:
    """Scores of a run and of the run adapted from it on the same images, kept beside the adapted one.

    `done` are the parent's by name and data: most draws share theirs.
    """
    before, after, rows = {}, {}, []
    known = [parent.manifest.source.name, *(info.target for info in parent.manifest.adaptations)]
    for name, domain in domains.items():
        if domain is None:
            continue
        domain = parent.not_adapted_to(domain)
        key = (name, domain.fingerprint)
        if key not in done:
            seen = [name] if name in known else []
            done[key] = parent.evaluate({name: domain}, seen=seen, progress=progress)
        # Neither is unseen: the source was trained on, the target adapted to.
        new = adapted.evaluate({name: domain}, seen=[name], progress=progress)
        before[name], after[name] = done[key][name], new[name]
        rows += [row for row in parent.records(done[key], benchmarks[name]) if row["domain"] == name]
        if adapted.folder is not None:
            adapted.write_records(new, benchmarks[name])
    if adapted.folder is not None:
        with sole_use(adapted.folder, seconds=SECONDS_TO_WAIT):
            write_atomically(adapted.folder / BEFORE, to_json_lines(rows))
    return Draw(adapted, before, after)
