"""What the page says of each benchmark, ready for the template."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Sequence
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.reporting.comparison import Comparison, compare, refuse_old_records
from onedomain.reporting.contenders import trained_for
from onedomain.reporting.corruption_tables import corruptions
from onedomain.reporting.figures import Drawn, figures_for, svg
from onedomain.reporting.page.answers import galleries
from onedomain.reporting.page.headline import headline
from onedomain.reporting.page.tables import (
    accuracy_table,
    domain_table,
    training_table,
    uncertainty_by_domain,
    uncertainty_table,
)
from onedomain.runs.layout import OWN
from onedomain.runs.records import RunRecords


def section(runs: Sequence[RunRecords], benchmark: str, identity: str) -> dict[str, Any]:
    """What the template shows of one benchmark."""
    comparison = compare(runs, benchmark)
    refuse_old_records(comparison)
    holds_up, knows = headline(comparison)
    known = BENCHMARKS.get(benchmark)
    drawn, not_drawn = figures(runs, benchmark)
    corrupted = ["corruptions"] if comparison.corrupted else []
    return {
        "id": identity,
        "name": "your own domains" if benchmark == OWN else benchmark,
        "summary": known.summary if known else "",
        "reduced": bool(reductions(comparison)),
        "holds_up": holds_up,
        "knows": knows,
        "links": [*corrupted, "images", *(["figures"] if drawn else []), "uncertainty", "training"],
        "accuracy": accuracy_table(comparison, identity),
        "knows_figure": drawn.pop("flagged", None),
        "corruptions": corruptions(comparison, identity),
        "galleries": galleries(comparison),
        "masks": drawn.pop("masks", None),  # of segmentation, instead of galleries
        "several_seeds": any(len(each.runs) > 1 for each in comparison.contenders),
        "evaluate_command": comparison.contenders[0].runs[0].evaluate_command(benchmark),
        "figures": list(drawn.values()),
        "not_drawn": not_drawn,
        "uncertainty": uncertainty_table(comparison, identity),
        "uncertainty_by_domain": uncertainty_by_domain(comparison, identity),
        "training": training_table(comparison, identity),
        "domains": domain_table(comparison, identity),
        "remarks": remarks(comparison),
    }


def reductions(comparison: Comparison) -> list[str]:
    """In what the runs fall short of the benchmark's protocol."""
    found = []
    known = BENCHMARKS.get(comparison.benchmark)
    there = {column.name for column in comparison.columns}
    missing = [name for name in known.targets if name not in there] if known else []
    if missing:
        found.append(f"Reduced protocol: {', '.join(missing)} of {comparison.benchmark} was not scored.")
    for contender in comparison.contenders:
        parts = [
            f"{name.replace('_', ' ')} {value:,} of {usual:,}" for name, (value, usual) in contender.reduced.items()
        ]
        if parts:
            found.append(f"Reduced protocol: {contender.title} was trained with {', '.join(parts)}.")
    return found


def remarks(comparison: Comparison) -> list[str]:
    """What a reader must know of the protocol before trusting a number."""
    found = reductions(comparison)
    made = sorted({column.note for column in comparison.columns} & {"rendered", "blended", "generated"})
    if made:
        found.append(f"Domains marked {' or '.join(made)} were made by onedomain, not collected in the wild.")
    for column in comparison.unseen:
        if not column.same_images:
            found.append(f"{column.name} is left out of the average: the runs were scored on different images of it.")
        elif not column.in_all:
            found.append(f"{column.name} is left out of the average: not every run was scored on it.")
    for contender in comparison.contenders:
        if contender not in comparison.rivals:
            met = ", ".join(sorted(contender.adapted_to.intersection(comparison.compared)))
            found.append(f"{contender.title} has learned images of {met}: it is not ranked with what has not.")
        if comparison.benchmark != OWN and not all(trained_for(run, comparison.benchmark) for run in contender.runs):
            elsewhere = contender.runs[0].manifest.benchmark or "your own images"
            found.append(f"{contender.title} was trained on {elsewhere}, not on {comparison.benchmark}.")
    return found


PIXELS = 96  # CSS pixels per inch
ELSEWHERE = ("flagged", "masks")  # where they stand in the page it is told if they are missing


def figures(runs: Sequence[RunRecords], benchmark: str) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
    """All that can be drawn of the runs that were scored on the benchmark, by name, and why the others cannot."""
    drawn = figures_for([run for run in runs if benchmark in run.benchmarks], benchmark)
    skipped = [(name, reason) for name, reason in drawn.skipped if name not in ELSEWHERE]
    return {each.name: _shown(each) for each in drawn}, skipped


def _shown(drawn: Drawn) -> dict[str, Any]:
    """As an image: apart from the page, so that neither its styles nor its names meet those of others."""
    width, height = (round(PIXELS * side) for side in drawn.figure.get_size_inches())
    with warnings.catch_warnings():
        # Of letters that its font lacks, which the browser has, and of room: nothing that the reader can change.
        warnings.simplefilter("ignore", UserWarning)
        text = svg(drawn.figure)
    source = f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"
    shown = {"source": source, "width": width, "height": height}
    return {"title": drawn.title, "explanation": drawn.explanation, **shown}
