"""`onedomain report`: one page of runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onedomain.cli import options as shared

GROUP = shared.RESULTS


@dataclass(frozen=True)
class Options:
    runs: list[str] = shared.run_folders()
    out: str = shared.option("--out FILE", "The page to write.", default="report.html")


def report(options: Options) -> None:
    """Write one self-contained HTML page of runs: who holds up where, and who knows when not.

    Files among the runs are passed over, so that runs/* may hold an older report.
    """
    from onedomain.data.progress import say
    from onedomain.errors import UserError
    from onedomain.reporting.page.page import write_report

    files = [run for run in options.runs if Path(run).is_file()]
    folders = [run for run in options.runs if run not in files]
    for file in files:
        say(f"passed over: {file} is a file, not a run folder")
    if not folders:
        raise UserError("runs", "only files were given", "run folders, as onedomain train makes them")
    say(f"The report is in {write_report(folders, options.out)}: open it in a browser.")
