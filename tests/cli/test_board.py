from __future__ import annotations

import sys
from pathlib import Path

from onedomain.cli.board import board
from onedomain.runs.job import Ended, RunProgress


def go(shown, clock):
    shown.begun("erm-0")
    shown.begun("sdg-0")
    for second in range(1, 62):
        clock.now = float(second)
        running = [
            RunProgress("erm-0", "train erm", second, 100, "1.0 steps/s"),
            RunProgress("sdg-0", "starting"),
        ]
        shown.show(running, second / 200, 139.0 - second)
    shown.ended(Ended("erm-0", Path("logs/erm-0.log"), 61.0))
    shown.ended(Ended("sdg-0", Path("logs/sdg-0.log"), 62.0, "loss became nan"))
    shown.stopping()
    shown.stopping()


def test_a_log_file_gets_a_line_a_run_and_one_every_half_minute(clock, capsys):
    with board("digits", 5) as shown:
        go(shown, clock)
    assert capsys.readouterr().err.splitlines() == [
        "begin  erm-0",
        "begin  sdg-0",
        "digits  0/5 runs  1:49 left  erm-0: train 30/100, 1.0 steps/s; sdg-0: starting",
        "digits  0/5 runs  1:19 left  erm-0: train 60/100, 1.0 steps/s; sdg-0: starting",
        "done   erm-0 in 1:01",
        "failed sdg-0: loss became nan (log: logs/sdg-0.log)",
        "digits: the runs save and stop",
    ]


def test_a_terminal_gets_lines_of_the_ended_runs_beside_the_bars(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with board("digits", 5) as shown:
        go(shown, clock)
    said = capsys.readouterr().err
    assert "done   erm-0 in 1:01" in said
    assert "failed sdg-0: loss became nan" in said
    assert "digits: the runs save and stop" in said
