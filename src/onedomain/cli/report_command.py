"""What `onedomain report` does."""

from __future__ import annotations

from pathlib import Path

from onedomain.cli.recipes import completed
from onedomain.data.progress import say
from onedomain.errors import UserError
from onedomain.reporting.page.page import write_report


def report(runs: list[str], out: str) -> None:
    """Files are passed over, for an older report may lie in `runs/*`; a folder that is no run is an error."""
    folders = [run for run in runs if not Path(run).is_file()]
    for run in runs:
        if run not in folders:
            say(f"passed over: {run} is a file, not a run folder")
    if not folders:
        raise UserError("runs", "only files were given", "run folders, as onedomain train makes them")
    say(f"The report is in {write_report(folders, out, completed)}: open it in a browser.")
