"""The ERM run that mCE and RmCE of a run are relative to: of the same source, seed and shared settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onedomain.data.files import read_json_lines
from onedomain.errors import UserError
from onedomain.evaluation.corruption_error import Robustness, Row, from_records
from onedomain.runs.commandline import onedomain, what_to_train
from onedomain.runs.identity import BOOKKEEPING, first_difference, identify
from onedomain.runs.layout import RESULTS
from onedomain.settings import Settings

BASELINE = "erm"  # plain training, which every other method is to beat
SHARED = tuple(name for name in Settings.model_fields if name not in BOOKKEEPING)  # settings that all methods have


def find_erm(own: Sequence[Row], benchmark: str, runs: Path) -> tuple[Path, Robustness] | None:
    """Among the run folders in `runs`, the ERM run that was trained and scored as the run of these records was."""
    for results in sorted(runs.glob(f"*/{RESULTS}")):
        try:
            with results.open(encoding="utf-8") as file:
                if not own or not trained_alike(json.loads(file.readline()), own[0]):
                    continue
            rows = [row for row in read_json_lines(results, "domain") if row.get("benchmark") == benchmark]
        except (UserError, OSError, ValueError):  # a folder beside this one is not this run's business
            continue
        if rows and _same_data(rows, own):
            return results.parent, from_records(rows, benchmark)
    return None


def trained_alike(row: Any, own: Row) -> bool:
    """Whether a record, of which all in a folder have the same run, is of an ERM run trained as ours."""
    if not isinstance(row, dict) or row.get("method") != BASELINE:
        return False
    compared = frozenset(("benchmark", "seed", "source", *SHARED))
    return not first_difference(identify(row), identify(own), among=compared.__contains__)


def _same_data(rows: Sequence[Row], own: Sequence[Row]) -> bool:
    def scored(of: Sequence[Row]) -> dict[str, str]:
        return {row["domain"]: row.get("data", "") for row in of if row.get("metric") == "accuracy"}

    theirs = scored(rows)
    return all(theirs.get(domain) == data for domain, data in scored(own).items())


def command_for_erm(own: Row, recipe: Mapping[str, Any], out: Path) -> str:
    """The command that makes the ERM run to compare with; `recipe` has what its benchmark sets for ERM."""
    usual = {**Settings().model_dump(mode="json"), **recipe}
    changed = {name: own["settings"][name] for name in SHARED if own["settings"].get(name, usual[name]) != usual[name]}
    trained = what_to_train(BASELINE, own["seed"], changed, benchmark=own.get("trained_on"))
    return onedomain("train", trained, ["--out", str(out)])
