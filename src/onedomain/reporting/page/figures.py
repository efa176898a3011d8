"""The figures of runs, as parts of the page."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Sequence
from typing import Any

from onedomain.reporting.figures import Drawn, figures_for, svg
from onedomain.runs.records import RunRecords

PIXELS = 96  # CSS pixels per inch
ELSEWHERE = ("masks",)  # the page has its own rows of these pictures, which a phone can show


def figures(runs: Sequence[RunRecords], benchmark: str) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """All that can be drawn of the runs that were scored on the benchmark, and why the others cannot."""
    drawn = figures_for([run for run in runs if benchmark in run.benchmarks], benchmark)
    skipped = [(name, reason) for name, reason in drawn.skipped if name not in ELSEWHERE]
    return [_shown(each) for each in drawn if each.name not in ELSEWHERE], skipped


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
