"""A grid of parents and what is adapted from them, in processes as a user's would be."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

from onedomain.benchmarks import BENCHMARKS
from onedomain.cli.reproduce_show import from_records, run_and_show, show_what_would_be_done
from onedomain.errors import Interrupted, OnedomainError
from onedomain.reporting.reproduce.columns import average_over, score
from onedomain.reporting.reproduce.declare import Adapting, Row, Table
from onedomain.reporting.reproduce.grid import Request
from onedomain.reporting.reproduce.tables import SCALES
from tests.conftest import ROOT
from tests.reporting.reproduce.test_command import PROGRAM, fingerprints
from tests.reporting.reproduce.toy import TASKS

ERM = Row("ERM", "erm", tasks=tuple(TASKS))
TUNED = replace(ERM, adaptation=Adapting("fine-tune", 2))
BROKEN = replace(TUNED, tasks=("toy-a",), settings={"learning_rate": 1e30})
SCORES = (score("toy-a/near", "A"), score("toy-b/near", "B"))
COLUMNS = (*SCORES, average_over(*SCORES))
TABLE = Table("toy-few-shot", "A toy", "toy", (ERM, TUNED, BROKEN), COLUMNS)


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Stopped when the first parent's adapted run has begun, and called again."""
    with pytest.MonkeyPatch.context() as patch:
        program = tmp_path_factory.mktemp("bin") / "python"
        program.write_text(PROGRAM.format(python=sys.executable, tests=str(ROOT)))
        program.chmod(0o755)
        patch.setattr(sys, "executable", str(program))
        for name, benchmark in TASKS.items():
            patch.setitem(BENCHMARKS, name, benchmark)
        out = tmp_path_factory.mktemp("grid")
        request = Request(TABLE, SCALES["full"], seeds=1, out=str(out), jobs=1)

        def interrupt():
            while not list(out.glob("*fine-tune*/run.yaml")):
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(Interrupted) as stopped:
            run_and_show(request, as_json=False)
        before = {name: fingerprints(out / f"{name}-erm-0") for name in TASKS}
        with pytest.raises(OnedomainError) as failed:
            run_and_show(request, as_json=False)
        yield request, before, stopped.value, failed.value


def test_parents_come_first_and_a_stopped_grid_goes_on_with_what_is_adapted(grid):
    request, before, stopped, _ = grid
    assert "runs to go; go on with: onedomain reproduce toy-few-shot" in str(stopped)
    for name in TASKS:
        assert before[name]
        assert fingerprints(request.folder / f"{name}-erm-0") == before[name]
    table = json.loads((request.folder / "table.json").read_text())
    trained, tuned, _ = table["rows"]
    assert (trained["seeds"], tuned["seeds"]) == ([0], [0])
    values = [tuned["cells"][f"{name}/near"]["mean"] for name in TASKS]
    assert tuned["cells"]["average"]["mean"] == pytest.approx(sum(values) / 2)
    assert (trained["steps"], tuned["steps"]) == (20, 38)


def test_what_cannot_be_adapted_because_its_parent_failed_is_told(grid):
    request, _, _, failed = grid
    parent = "toy-a-erm-learning_rate-1e+30"
    assert f"2 of 6 runs failed: {parent}-0, {parent}-fine-tune-2-0;" in str(failed)
    table = json.loads((request.folder / "table.json").read_text())
    error = f"{parent}-0, which it is adapted from, failed"
    assert [each["error"] for each in table["failed"]][1] == error
    assert table["rows"][2]["seeds"] == []


def test_a_dry_run_and_records_alone_know_the_adapted_runs(grid, capsys):
    request, *_ = grid
    show_what_would_be_done(request, as_json=True)
    shown = {run["run"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    tuned = shown["toy-b-erm-fine-tune-2-0"]
    assert (tuned["state"], tuned["parent"], tuned["target"], tuned["shots"]) == ("done", "toy-b-erm-0", "near", 2)
    show_what_would_be_done(request, as_json=False)
    assert "fine-tune, 2 shots of near" in " ".join(capsys.readouterr().out.split())
    from_records(Request(TABLE, SCALES["full"]), [str(request.folder / "records.jsonl")], as_json=True)
    again = json.loads(capsys.readouterr().out)
    table = json.loads((request.folder / "table.json").read_text())
    assert [row["cells"] for row in again["rows"]] == [row["cells"] for row in table["rows"]]
