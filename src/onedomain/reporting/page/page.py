"""The report: one HTML file that holds everything it shows, and loads nothing."""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from onedomain._version import __version__
from onedomain.benchmarks import BENCHMARKS
from onedomain.data.files import write_atomically
from onedomain.data.folders import tidied
from onedomain.errors import UserError
from onedomain.reporting.comparison import Comparison, compare, refuse_old_records
from onedomain.reporting.corruption_tables import corruptions
from onedomain.reporting.figures import Drawn, figures_for, svg
from onedomain.reporting.page.answers import galleries
from onedomain.reporting.page.headline import headline
from onedomain.reporting.page.runs import run_details
from onedomain.reporting.page.tables import (
    accuracy_table,
    domain_table,
    training_table,
    uncertainty_by_domain,
    uncertainty_table,
)
from onedomain.reporting.render.html import template
from onedomain.reporting.tuning import tuning_tables
from onedomain.runs.layout import OWN
from onedomain.runs.records import RunRecords, read_runs
from onedomain.runs.trials import Tuning, read_tuning

DOCTYPE = b"<!doctype html>"
MOST_TRIALS = 10  # of a tuning whose runs stand beside each other
PIXELS = 96  # CSS pixels per inch
ELSEWHERE = ("flagged", "masks")  # where they stand in the page it is told if they are missing


def write_report(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Read the runs, and write the report of them to `out`."""
    path = Path(out)
    if path.is_dir():
        raise UserError("--out", f"{path} is a folder", f"a file, such as {path / 'report.html'}")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(DOCTYPE)).lower() not in (b"", DOCTYPE):
                raise UserError("--out", f"{path} is there and is no web page", "a new file, or an old report")
    page = render(read_runs([each for folder in folders for each in _runs_in(Path(folder))]))
    with tidied(path.parent):
        write_atomically(path, page)
    return path


def render(runs: Sequence[RunRecords]) -> str:
    """The page as text."""
    scored = (benchmark for run in runs for benchmark in run.benchmarks if run.scores(benchmark))
    sections = [
        section(runs, benchmark, f"part-{number}") for number, benchmark in enumerate(dict.fromkeys(scored), start=1)
    ]
    templates = resources.files("onedomain.reporting.page") / "templates"
    script = (templates / "page.js").read_text(encoding="utf-8")
    now = datetime.datetime.now(datetime.timezone.utc)
    return template("onedomain.reporting.page", "page.html").render(
        version=__version__,
        title=f"{', '.join(each['name'] for each in sections)}: which method holds up where",
        made=now.isoformat(timespec="seconds"),
        made_text=f"{now.day} {now:%B %Y, %H:%M} UTC",
        style=(templates / "page.css").read_text(encoding="utf-8"),
        script=script,
        # What allows this script, and no other, to run in the page.
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        sections=sections,
        tunings=[tuning_tables(tuning, f"tuning-{number}") for number, tuning in enumerate(_tunings(runs), start=1)],
        runs=run_details(runs),
    )


def _runs_in(folder: Path) -> list[Path]:
    """The folder itself; of a tuning the runs of its best trials, each once."""
    tuning = read_tuning(folder)
    if tuning is None:
        return [folder]
    return list(dict.fromkeys(folder / run for trial in tuning.complete[:MOST_TRIALS] for run in trial.runs))


def _tunings(runs: Sequence[RunRecords]) -> list[Tuning]:
    """Those that the runs are trials of."""
    folders = dict.fromkeys(run.folder.parent for run in runs)
    return [tuning for folder in folders if (tuning := read_tuning(folder)) is not None]


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
        if comparison.benchmark != OWN and not contender.trained_for_it:
            elsewhere = contender.manifest.benchmark or "your own images"
            found.append(f"{contender.title} was trained on {elsewhere}, not on {comparison.benchmark}.")
    return found


def figures(runs: Sequence[RunRecords], benchmark: str) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
    """All that can be drawn of the runs that were scored on the benchmark, by name, and why the others cannot."""
    drawn = figures_for([run for run in runs if benchmark in run.benchmarks], benchmark)
    skipped = [(name, reason) for name, reason in drawn.skipped if name not in ELSEWHERE]
    return {each.name: _shown(each) for each in drawn}, skipped


def _shown(drawn: Drawn) -> dict[str, Any]:
    """As an image: apart from the page, so that neither its styles nor its names meet those of others."""
    width, height = (round(PIXELS * side) for side in drawn.figure.get_size_inches())
    text = svg(drawn.figure)
    source = f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"
    about = {"title": drawn.title, "explanation": drawn.explanation}
    return {**about, "source": source, "width": width, "height": height}
