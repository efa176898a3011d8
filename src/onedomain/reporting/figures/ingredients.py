"""What several figures are made from: which domains get a panel, and whose answers they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onedomain.data.arrays import FloatArray
from onedomain.data.datasets.cifar_c import REGENERATED_NOTE
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.contenders import Contender, adapted_to
from onedomain.runs.records import RunRecords

MOST_PANELS = 8  # of domains; with more of them the unseen ones are pooled


class Missing(Exception):
    """A figure cannot be drawn, for a reason that its text tells."""


@dataclass(frozen=True)
class Panel:
    """One or several domains that are shown as one."""

    title: str
    domains: tuple[str, ...]

    def values(self, group: Contender, benchmark: str, of: Callable[[Outcome], FloatArray]) -> FloatArray:
        """A value of every image of these domains, by all runs of a group that answered."""
        parts = [
            of(run.outcomes(benchmark)[domain])
            for run in group.runs
            for domain in self.domains
            if domain in run.outcomes(benchmark)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def domain_panels(runs: Sequence[RunRecords], benchmark: str) -> list[Panel]:
    """A panel for each domain that was answered, the source first; if they are many, one for all unseen ones."""
    source, unseen = _answered(runs, benchmark)
    if len(source) + len(unseen) > MOST_PANELS:
        return whole_panels(runs, benchmark)
    return [*(Panel(f"{each} (source)", (each,)) for each in source), *(Panel(each, (each,)) for each in unseen)]


def whole_panels(runs: Sequence[RunRecords], benchmark: str) -> list[Panel]:
    """The source, and all unseen domains as one."""
    source, unseen = _answered(runs, benchmark)
    known = [Panel("source", tuple(source))] if source else []
    return [*known, *([Panel(f"{len(unseen)} unseen domains", tuple(unseen))] if unseen else [])]


def regenerated(runs: Sequence[RunRecords], benchmark: str) -> str:
    """What to say where targets are not the official files but were made anew; empty where none was."""
    notes: dict[str, str] = {}
    for run in runs:
        for domain, metrics in run.scores(benchmark).items():
            row = next(iter(metrics.values()))
            if row["unseen"]:
                notes[domain] = notes.get(domain) or row.get("note", "")
    made = [note for note in notes.values() if REGENERATED_NOTE in note]
    if not made:
        return ""
    which = "targets" if len(made) == len(notes) else f"{len(made)} of {len(notes)} targets"
    return f"{which}: {'; '.join(dict.fromkeys(made))}"


def _answered(runs: Sequence[RunRecords], benchmark: str) -> tuple[list[str], list[str]]:
    """The source, and the other domains, of which answers were kept."""
    unseen: dict[str, bool] = {}
    for run in runs:
        for domain, outcome in run.outcomes(benchmark).items():
            unseen[domain] = unseen.get(domain, False) or outcome.unseen
    if not unseen:
        raise Missing(f"no answers were kept; score the runs again: {runs[0].evaluate_command(benchmark)}")
    met = set().union(*(adapted_to(run) for run in runs))
    source = [domain for domain in unseen if not unseen[domain] and domain not in met]
    return source, [domain for domain in unseen if domain not in source]
