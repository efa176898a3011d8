"""The report: one HTML file that holds everything it shows, and loads nothing."""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from onedomain._version import __version__
from onedomain.data.files import write_atomically
from onedomain.data.folders import tidied
from onedomain.errors import UserError
from onedomain.reporting.page.runs import run_details
from onedomain.reporting.page.sections import section
from onedomain.reporting.render.html import template
from onedomain.runs.records import RunRecords, read_runs

DOCTYPE = b"<!doctype html>"


def write_report(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Read the runs, and write the report of them to `out`."""
    path = Path(out)
    if path.is_dir():
        raise UserError("--out", f"{path} is a folder", f"a file, such as {path / 'report.html'}")
    if path.is_file() and not _is_page(path):
        raise UserError("--out", f"{path} is there and is no web page", "a new file, or an old report")
    page = render(read_runs(folders))
    with tidied(path.parent):
        write_atomically(path, page)
    return path


def _is_page(path: Path) -> bool:
    """Whether nothing is lost when a report takes its place."""
    with path.open("rb") as file:
        return file.read(len(DOCTYPE)).lower() in (b"", DOCTYPE)


def render(runs: Sequence[RunRecords]) -> str:
    """The page as text."""
    scored = (benchmark for run in runs for benchmark in run.benchmarks if run.scores(benchmark))
    sections = [
        section(runs, benchmark, f"part-{number}") for number, benchmark in enumerate(dict.fromkeys(scored), start=1)
    ]
    script = _package_file("page.js")
    now = datetime.datetime.now(datetime.timezone.utc)
    return template("onedomain.reporting.page", "page.html").render(
        version=__version__,
        title=f"{', '.join(each['name'] for each in sections)}: which method holds up where",
        made=now.isoformat(timespec="seconds"),
        made_text=f"{now.day} {now:%B %Y, %H:%M} UTC",
        style=_package_file("page.css"),
        script=script,
        script_hash=script_hash(script),
        sections=sections,
        runs=run_details(runs),
    )


def script_hash(script: str) -> str:
    """What allows this script, and no other, to run in the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _package_file(name: str) -> str:
    return (resources.files("onedomain.reporting.page") / "templates" / name).read_text(encoding="utf-8")
