"""Scores of a run and of the run adapted from it, on the same images, kept beside the adapted run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedomain.data.domain import Domain
from onedomain.data.files import to_json_lines, write_atomically
from onedomain.data.folders import SECONDS_TO_WAIT, sole_use
from onedomain.evaluation.scores import Evaluation
from onedomain.runs.layout import BEFORE
from onedomain.training.adapted import Draw

if TYPE_CHECKING:
    from onedomain.training.run import Run


class Scorer:
    """Scores a parent and the run adapted from it on the same images, and keeps both beside the adapted run."""

    def __init__(self, run: Run, target: str, benchmark: str | None, held_out: Domain | None, progress: bool) -> None:
        self.parent, self.target, self.held_out, self.progress = run, target, held_out, progress
        self.source = None if held_out is None else run.manifest.source.name
        self.benchmarks = {target: benchmark, run.manifest.source.name: run.manifest.benchmark}
        self.done: dict[tuple[str, str], Evaluation] = {}  # of the parent, by name and data: most draws share theirs

    def draw(self, adapted: Run, test: Domain | None) -> Draw:
        domains = {self.target: test, self.parent.manifest.source.name: self.held_out}
        before, after, rows = {}, {}, []
        for name, domain in domains.items():
            if domain is None:
                continue
            domain = self.parent.not_adapted_to(domain)
            old = self._of_parent(name, domain)
            # Neither is unseen: the source was trained on, the target adapted to.
            new = adapted.evaluate({name: domain}, seen=[name], progress=self.progress)
            before[name], after[name] = old[name], new[name]
            benchmark = self.benchmarks[name]
            rows += [row for row in self.parent.records(old, benchmark) if row["domain"] == name]
            if adapted.folder is not None:
                adapted.write_records(new, benchmark)
        if adapted.folder is not None:
            with sole_use(adapted.folder, seconds=SECONDS_TO_WAIT):
                write_atomically(adapted.folder / BEFORE, to_json_lines(rows))
        return Draw(adapted, before, after)

    def _of_parent(self, name: str, domain: Domain) -> Evaluation:
        key = (name, domain.fingerprint)
        if key not in self.done:
            known = [self.source, *(info.target for info in self.parent.manifest.adaptations)]
            seen = [name] if name in known else []
            self.done[key] = self.parent.evaluate({name: domain}, seen=seen, progress=self.progress)
        return self.done[key]
