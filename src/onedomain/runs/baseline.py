"""The ERM run that mCE and RmCE of a run are relative to: of the same source, seed and shared settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onedomain.errors import UserError
from onedomain.evaluation.corruption_error import Robustness, Row, from_records
from onedomain.runs.commandline import onedomain, what_to_train
from onedomain.runs.identity import BOOKKEEPING, Identity, first_difference, identify
from onedomain.runs.layout import RESULTS
from onedomain.runs.rows import read_records
from onedomain.settings import Settings

BASELINE = "erm"  # plain training, which every other method is to beat
SHARED = tuple(name for name in Settings.model_fields if name not in BOOKKEEPING)  # settings that all methods have


def find_erm(own: Sequence[Row], benchmark: str, runs: Path) -> tuple[Path, Robustness] | None:
    """Among the run folders in `runs`, the ERM run that was trained and scored as the run of these records was."""
    for results in sorted(runs.glob(f"*/{RESULTS}")):
        try:
            rows = [row for row in read_records(results) if row.get("benchmark") == benchmark]
            if rows and trained_alike(identify(rows[0]), identify(own[0])) and _scored(own) <= _scored(rows):
                return results.parent, from_records(rows, benchmark)
        except (UserError, OSError, ValueError, KeyError):  # a folder beside this one is not this run's business
            continue
    return None


def trained_alike(run: Identity, own: Identity) -> bool:
    """Whether it is an ERM run trained as ours."""
    compared = frozenset(("benchmark", "seed", "source", *SHARED))
    return run.facts["method"] == BASELINE and not first_difference(run, own, among=compared.__contains__)


def _scored(rows: Sequence[Row]) -> set[tuple[str, str]]:
    return {(row["domain"], row.get("data", "")) for row in rows if row.get("metric") == "accuracy"}


def command_for_erm(own: Identity, recipe: Mapping[str, Any], out: Path) -> str:
    """The command that makes the ERM run to compare with; `recipe` has what its benchmark sets for ERM."""
    usual = {**Settings().model_dump(mode="json"), **recipe}
    changed = {name: own.facts[name] for name in SHARED if own.facts.get(name, usual[name]) != usual[name]}
    trained = what_to_train(BASELINE, own.facts["seed"], changed, benchmark=own.facts["benchmark"])
    return onedomain("train", trained, ["--out", str(out)])
