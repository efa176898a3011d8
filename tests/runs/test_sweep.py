"""The grid's mechanism, with small programs in the place of training runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from onedomain.data.folders import sole_use
from onedomain.errors import UserError
from onedomain.runs.job import Job
from onedomain.runs.sweep import run_jobs
from tests.conftest import ROOT


class Told:
    """A board that remembers what it was told."""

    def __init__(self):
        self.lines, self.most, self.seen, self.left, self.stops = [], 0, {}, [], 0

    def begun(self, name):
        self.lines.append(("begun", name))

    def ended(self, run):
        self.lines.append(("ended", run.name, run.error))

    def show(self, running, share, seconds_left):
        self.most = max(self.most, len(running))
        self.left.append((share, seconds_left))
        for run in running:
            self.seen.setdefault(run.name, set()).add((run.what, run.done, run.total, run.pace))

    def stopping(self):
        self.stops += 1


@pytest.fixture
def job(tmp_path):
    def make(name, program, seconds=1.0):
        program = "import json, os, signal, sys, time\n" + textwrap.dedent(program)
        return Job(name, (sys.executable, "-c", program), tmp_path / "logs" / f"{name}.log", seconds)

    return make


SAVES_WHEN_ASKED = """
    def save(*_):
        print("onedomain: stopped at step 3; saved", file=sys.stderr)
        os._exit(130)
    signal.signal(signal.SIGTERM, save)
    print(json.dumps({"progress": "train", "done": 3, "total": 10, "unit": "steps", "rate": 2.0, "note": ""}),
          file=sys.stderr, flush=True)
    time.sleep(60)
"""


def test_a_failing_run_is_named_with_its_last_line_and_log_and_stops_no_other(job):
    told = Told()
    jobs = [
        job("bad", "sys.stderr.write('first\\nonedomain: the loss became nan\\n'); exit(1)"),
        job("silent", "exit(3)"),
        job("shot", "os.kill(os.getpid(), signal.SIGKILL)"),
        job("good", "print('a table'); print('The run is in x', file=sys.stderr)"),
    ]
    grid = run_jobs(jobs, 1, told)
    assert not grid.stopped
    assert {each.name: each.error for each in grid.ended} == {
        "bad": "the loss became nan",
        "silent": "ended with exit code 3",
        "shot": "killed by SIGKILL (by the system, if memory ran out)",
        "good": "",
    }
    assert [each.name for each in grid.failed] == ["bad", "silent", "shot"]
    bad, good = jobs[0].log.read_text(), jobs[3].log.read_text()
    assert "first\nonedomain: the loss became nan\n" in bad
    assert "a table" in good
    assert "The run is in x" in good
    assert good.startswith("$ ")  # the command, to try by hand


def test_as_many_at_a_time_as_asked_for(job):
    told = Told()
    assert len(run_jobs([job(f"job-{n}", "time.sleep(0.3)") for n in range(5)], 2, told).ended) == 2 + 2 + 1
    assert told.most == 2


def test_progress_lines_are_shown_and_kept_out_of_the_log(job):
    told = Told()
    only = job(
        "a",
        """
        assert os.environ["ONEDOMAIN_PROGRESS"] == "json"
        line = {"progress": "train sdg", "done": 5, "total": 10, "unit": "steps", "rate": 2.5, "note": ""}
        for done, note in ((5, ""), (6, "domain 2 40%")):
            print(json.dumps({**line, "done": done, "note": note}), file=sys.stderr, flush=True)
            time.sleep(0.5)
        """,
        seconds=100.0,
    )
    run_jobs([only], 1, told)
    assert ("train sdg", 5, 10, "2.5 steps/s") in told.seen["a"]
    assert ("train sdg", 6, 10, "domain 2 40%") in told.seen["a"]
    assert only.log.read_text() == f"$ {shlex.join(only.command)}\n"
    shares = [share for share, _ in told.left]
    assert shares == sorted(shares)
    assert 0.19 in [round(share, 6) for share in shares]  # one of the five steps that were left to do: 95% of all
    assert shares[-1] == 1.0
    assert told.left[0][1] == pytest.approx(100, rel=0.1)  # as expected, while nothing else is known
    assert told.left[-1][1] == 0


def test_a_stop_lets_the_running_ones_save_and_begins_no_other(job):
    told = Told()
    jobs = [job("one", SAVES_WHEN_ASKED), job("two", SAVES_WHEN_ASKED), job("three", "pass")]

    def interrupt():
        while sum(("train", 3, 10, "2.0 steps/s") in seen for seen in told.seen.values()) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    grid = run_jobs(jobs, 2, told)
    assert grid.stopped
    assert grid.ended == []  # neither done nor failed
    assert told.stops
    assert ("begun", "three") not in told.lines
    for each in jobs[:2]:
        assert "stopped at step 3; saved" in each.log.read_text()


def test_a_second_stop_kills_what_does_not_end(job):
    stubborn = job("stubborn", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(60)")

    def interrupt():
        while not (stubborn.log.exists() and stubborn.log.read_text().endswith("on\n")):
            time.sleep(0.05)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    threading.Thread(target=interrupt).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([stubborn], 1, Told())
    assert time.monotonic() - begun < 20


def test_processes_of_a_killed_call_hold_the_folder_until_they_end(tmp_path):
    """Else a second call would train in folders that the first one's processes still write to."""
    program = """
        import sys
        from pathlib import Path
        from onedomain.cli.board import board
        from onedomain.data.folders import sole_use
        from onedomain.runs.job import Job
        from onedomain.runs.sweep import run_jobs
        child = "import time; open('begun', 'w').close(); time.sleep(2)"
        with sole_use(Path(".")) as keep_open, board("x", 1) as shown:
            run_jobs([Job("a", (sys.executable, "-c", child), Path("a.log"), 1.0)], 1, shown, keep_open)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    )
    while not (tmp_path / "begun").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    with pytest.raises(UserError, match="in use"), sole_use(tmp_path):
        pass
    with sole_use(tmp_path, seconds=20.0):
        pass


class OneByOne:
    """A feed of some jobs that ends those that say less than a half, and remembers what it was told."""

    seconds_to_come = 0.0

    def __init__(self, *jobs):
        self.jobs, self.scores, self.runs = list(jobs), [], []

    def next(self):
        return self.jobs.pop(0) if self.jobs else None

    def goes_on(self, name, done, score):
        self.scores.append((name, done, score))
        return score > 0.5

    def ended(self, run):
        self.runs.append((run.name, run.error, run.early))
        return run


SAYS = """
    def score(done, value):
        print(json.dumps({{"score": value, "done": done}}), file=sys.stderr, flush=True)
    def save(*_):
        print("onedomain: stopped at step 1; saved", file=sys.stderr)
        os._exit(143)
    signal.signal(signal.SIGTERM, save)
    score(1, {first})
    time.sleep({seconds})
    score(2, 0.9)
"""


def test_a_feed_hears_scores_ends_what_is_hopeless_and_begins_further_runs(job):
    good, bad = SAYS.format(first=0.8, seconds=0), SAYS.format(first=0.1, seconds=60)
    feed = OneByOne(job("good", good), job("bad", bad), job("broken", "exit(3)"), job("last", good))
    told = Told()
    begun = time.monotonic()
    grid = run_jobs([], 1, told, feed=feed)
    assert time.monotonic() - begun < 30
    assert feed.runs == [
        ("good", "", False),
        ("bad", "", True),
        ("broken", "ended with exit code 3", False),
        ("last", "", False),
    ]
    assert [score for score in feed.scores if score[0] != "bad"] == [
        (name, *told) for name in ("good", "last") for told in ((1, 0.8), (2, 0.9))
    ]
    assert [score for score in feed.scores if score[0] == "bad"] == [("bad", 1, 0.1)]
    assert (grid.stopped, [each.name for each in grid.failed]) == (0, ["broken"])
