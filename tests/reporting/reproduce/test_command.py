"""Whole grids of a few steps on a few images, in processes as a user's would be."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onedomain.benchmarks import BENCHMARKS
from onedomain.cli.reproduce_show import from_records, run_and_show, show_what_would_be_done
from onedomain.errors import Interrupted, OnedomainError, UserError
from onedomain.reporting.reproduce import tables
from onedomain.reporting.reproduce.columns import average_over, score
from onedomain.reporting.reproduce.declare import Row, Scale, Table
from onedomain.reporting.reproduce.grid import Request
from tests.conftest import ROOT
from tests.reporting.reproduce.toy import BENCHMARK

ERM = Row("ERM", "erm")
BROKEN = Row("ERM, far too fast", "erm", {"learning_rate": 1e30})
SCORES = (score("near", "near"), score("far", "far"))
COLUMNS = (*SCORES, average_over(*SCORES))
TOY = Table("toy", "A toy", "toy", (ERM, BROKEN), COLUMNS)
ALONE = Table("toy", "A toy", "toy", (ERM,), COLUMNS)
FEW = Scale("few", share=0.5, note="half the steps")

# In the place of `python -m onedomain`: the same, on a benchmark that the library lacks, and slow enough to be stopped.
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {tests!r})
from tests.reporting.reproduce.toy import register, slow_down
register()
slow_down()
sys.argv = ["onedomain", *sys.argv[3:]]
from onedomain.cli import main
main()
"""


@pytest.fixture(scope="module", autouse=True)
def toy_benchmark(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        program = tmp_path_factory.mktemp("bin") / "python"
        program.write_text(PROGRAM.format(python=sys.executable, tests=str(ROOT)))
        program.chmod(0o755)
        patch.setattr(sys, "executable", str(program))
        patch.setitem(BENCHMARKS, "toy", BENCHMARK)
        yield


def fingerprints(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


class Ended(NamedTuple):
    """A grid of two runs that was stopped in the first, called again, and failed in the second."""

    out: Path
    stopped: Interrupted
    metrics: list[str]  # of the first run when it was stopped
    said: str  # in its log
    table: dict[str, Any]
    error: OnedomainError


@pytest.fixture(scope="module")
def grid(toy_benchmark, tmp_path_factory):
    out = tmp_path_factory.mktemp("grid")
    metrics = out / "erm-0" / "metrics.jsonl"
    request = Request(TOY, FEW, seeds=1, out=str(out), jobs=1)

    def interrupt():
        while not (metrics.exists() and metrics.read_text().count("\n") >= 2):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Interrupted) as stopped:
        run_and_show(request, as_json=False)
    before = metrics.read_text().splitlines()
    said = (out / "logs" / "erm-0.log").read_text()
    with pytest.raises(OnedomainError) as failed:
        run_and_show(request, as_json=False)
    return Ended(out, stopped.value, before, said, json.loads((out / "table.json").read_text()), failed.value)


def test_a_stopped_grid_saves_and_says_how_to_go_on(grid):
    assert grid.stopped.exit_code == 130
    again = f"onedomain reproduce toy --scale few --seeds 1 --out {grid.out} --jobs 1"
    assert str(grid.stopped) == f"stopped with 2 of 2 runs to go; go on with: {again}"
    assert "stopped at step" in grid.said
    assert 2 <= len(grid.metrics) < 20


def test_a_stopped_grid_goes_on_where_it_was(grid):
    """Lines carry the time that training took so far: one that was trained again would differ."""
    rows = (grid.out / "erm-0" / "metrics.jsonl").read_text().splitlines()
    assert rows[: len(grid.metrics)] == grid.metrics
    assert json.loads(rows[-1])["step"] == 100


def test_a_failed_run_is_named_and_the_table_has_a_gap(grid):
    out, table, error = grid.out, grid.table, grid.error
    assert error.exit_code == 1
    assert "1 of 2 runs failed: erm-learning_rate-1e+30-0" in str(error)
    assert str(out / "logs") in str(error)
    good, bad = table["rows"]
    assert good["cells"]["near"]["mean"] > 0
    assert (bad["cells"]["near"]["mean"], bad["seeds"]) == (None, [])
    [failed] = table["failed"]
    assert failed["run"] == "erm-learning_rate-1e+30-0"
    assert "try a smaller learning_rate" in failed["error"]
    assert "smaller learning_rate" in Path(failed["log"]).read_text()
    assert {path.name for path in out.iterdir()} >= {"table.md", "table.tex", "table.csv", "records.jsonl", "erm-0"}


def test_finished_runs_are_not_repeated(grid, capsys):
    out = grid.out
    before = fingerprints(out / "erm-0")
    run_and_show(Request(ALONE, FEW, seeds=1, out=str(out)), as_json=True)
    printed = capsys.readouterr()
    assert fingerprints(out / "erm-0") == before
    assert "1 of 1 runs are there already" in printed.err
    table = json.loads(printed.out)  # one document and nothing else
    assert table["failed"] == []
    assert (table["rows"][0]["seeds"], table["rows"][0]["steps"]) == ([0], 100)
    assert table["command"] == "onedomain reproduce toy --scale few --seeds 1"


def test_the_table_is_made_again_from_its_records_alone(grid, tmp_path, capsys):
    out, table = grid.out, grid.table
    request = Request(TOY, FEW, out=str(tmp_path / "again"))
    from_records(request, [str(out / "records.jsonl")], as_json=True)
    again = json.loads(capsys.readouterr().out)
    assert [row["cells"] for row in again["rows"]] == [row["cells"] for row in table["rows"]]
    assert again["versions"] == table["versions"]
    assert {"onedomain", "torch", "python"} <= set(again["versions"])
    assert (tmp_path / "again" / "table.tex").exists()
    with pytest.raises(UserError, match="no run of the table toy at the scale other"):
        from_records(Request(TOY, Scale("other", 0.3)), [str(out / "records.jsonl")], as_json=True)
    with pytest.raises(UserError, match="is not a file"):
        from_records(request, [str(tmp_path / "nowhere.jsonl")], as_json=True)


def test_a_dry_run_shows_states_and_time_and_writes_nothing(grid, capsys):
    out = grid.out
    before = fingerprints(out)
    request = Request(TOY, FEW, seeds=2, out=str(out), jobs=2)
    show_what_would_be_done(request, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert {run["run"]: run["state"] for run in shown["runs"]} == {
        "erm-0": "done",
        "erm-1": "new",
        "erm-learning_rate-1e+30-0": "going on",
        "erm-learning_rate-1e+30-1": "new",
    }
    assert shown["estimated_from"] == "finished runs: 1"
    show_what_would_be_done(request, as_json=False)
    text = capsys.readouterr().out
    assert "REDUCED" in text
    assert "3 of 4 runs to do, 2 at a time: about" in text
    assert fingerprints(out) == before


def test_other_settings_in_a_run_folder_stop_the_grid_before_it_starts(grid):
    out = grid.out
    before = fingerprints(out)
    with pytest.raises(UserError, match=r"erm-0: holds a run whose steps is 100, and here it is 20"):
        run_and_show(Request(ALONE, Scale("less", 0.1), seeds=1, out=str(out)), as_json=False)
    assert fingerprints(out) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["digit"], "table: 'digit' is not known, did you mean 'digits'?"),
        (["digits", "--scale", "huge"], "--scale: 'huge' is not known"),
        (["digits", "--seeds", "0"], "--seeds: got 0; allowed: a whole number from 1"),
        (["digits", "--jobs", "0"], "--jobs: got 0; allowed: a whole number from 1"),
        (["digits", "--out", "FILE"], "is a file; allowed: a folder, there or not"),
        (["digits", "--data", "EMPTY"], "not found in"),
        (["digits", "--from", "a", "--dry-run"], "--from: given together with --dry-run; allowed: one of them"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(arguments, line, tmp_path, monkeypatch, onedomain):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    (tmp_path / "EMPTY").mkdir()
    code, out, error = onedomain("reproduce", *arguments)
    assert code == 2
    assert line in error
    assert error.count("\n") == 1
    assert out == ""
    assert {path.name for path in tmp_path.iterdir()} == {"FILE", "EMPTY"}


def test_the_command_reaches_a_declared_table_and_names_the_one_that_draws_figures(
    grid, tmp_path, monkeypatch, onedomain
):
    monkeypatch.setitem(tables.TABLES, "toy", ALONE)
    monkeypatch.setitem(tables.SCALES, "few", FEW)
    command = ["reproduce", "toy", "--scale", "few", "--seeds", 1]
    code, out, err = onedomain(*command, "--out", grid.out)
    assert code == 0
    assert "A toy; REDUCED protocol" in out
    assert err.splitlines()[-1] == f"Figures: onedomain figures {grid.out}/*-0 --out {grid.out / 'figures'}"
    _, _, err = onedomain(*command, "--out", tmp_path / "new", "--use", grid.out)
    assert f"onedomain figures {grid.out / 'erm-0'} --out {tmp_path / 'new' / 'figures'}" in err.splitlines()[-1]
    _, _, err = onedomain(*command, "--out", grid.out, "--json")
    assert "onedomain figures" not in err
