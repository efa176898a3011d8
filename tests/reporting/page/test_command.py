from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reporting.page.made import made_run, write_run


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    """They take seconds, and have a test of their own."""
    monkeypatch.setattr("onedomain.reporting.page.page.figures", lambda runs, benchmark: ({}, []))


@pytest.fixture(autouse=True)
def _two_runs(monkeypatch, tmp_path):
    """In `runs`, where the commands are called."""
    monkeypatch.chdir(tmp_path)
    for method in ("erm", "sdg"):
        write_run(Path("runs") / method, made_run({"home": 0.9, "far": 0.5}, method))


def test_a_report_is_written_and_said_where(onedomain):
    code, out, error = onedomain("report", "runs/erm", "runs/sdg")
    assert (code, out) == (0, "")
    assert error == "The report is in report.html: open it in a browser.\n"
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_files_among_the_runs_are_passed_over_and_named(onedomain):
    for _ in range(2):  # the second time, the glob holds the report itself
        code, _, error = onedomain("report", *sorted(Path("runs").iterdir()), "--out", "runs/report.html")
        assert code == 0
    assert "passed over: runs/report.html is a file, not a run folder\n" in error


def empty_folder():
    Path("runs/empty").mkdir()


def foreign_folder():
    Path("runs/photos").mkdir()
    Path("runs/photos/a.png").write_bytes(b"x")


def unfinished_run():
    Path("runs/sdg/model.safetensors").unlink()


def run_without_records():
    Path("runs/sdg/results.jsonl").unlink()


def run_of_another_version():
    path = Path("runs/sdg/results.jsonl")
    rows = [{**json.loads(line), "onedomain": "9.9.0"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def copied_run():
    write_run("runs/zzz", made_run({"home": 0.9, "far": 0.5}, "sdg"))


def folder_in_the_way():
    Path("report.html").mkdir()


def file_in_the_way():
    Path("report.html").write_text("mine")


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (empty_folder, "runs/empty: is empty; allowed: run folders"),
        (foreign_folder, "runs/photos: is not a run folder (it has no run.yaml)"),
        (unfinished_run, "runs/sdg: has not finished"),
        (run_without_records, "runs/sdg: has no records; allowed: a run that was scored: onedomain evaluate runs/sdg"),
        (run_of_another_version, "runs/sdg: is of onedomain 9.9.0, and runs/erm of"),
        (copied_run, "runs/zzz: is the same as runs/sdg: SDG, seed 0, same settings"),
        (folder_in_the_way, "--out: report.html is a folder; allowed: a file, such as report.html/report.html"),
        (file_in_the_way, "--out: report.html is there and is no web page"),
    ],
)
def test_a_mistake_ends_in_one_line_and_writes_nothing(onedomain, spoil, line):
    spoil()
    before = {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}
    code, out, error = onedomain("report", *sorted(Path("runs").iterdir()))
    assert code == 2
    assert line in error
    assert error.count("\n") == 1
    assert out == ""
    assert {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")} == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["report"], "Missing argument 'RUN…'"),
        (["report", "runs"], "runs: holds 2 runs, and is none itself; allowed: runs/*"),
        (["report", "nowhere/*"], "nowhere/*: is not there"),
        (["report", "runs/erm/run.yaml"], "runs: only files were given"),
        (["report", "runs/erm", "runs/erm/"], "runs/erm: is given twice"),
        (["report", "runs/erm", "--out", "runs/erm/run.yaml/x.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_reported_is_told_in_one_line(onedomain, arguments, line):
    code, _, error = onedomain(*arguments)
    assert code == 2
    assert line in error.splitlines()[-1]
    assert not Path("report.html").exists()
