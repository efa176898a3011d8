"""The short form of `make fuzz`; and that it sees what ends badly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onedomain import cli
from tests.conftest import ROOT
from tests.fuzz import worker
from tests.fuzz.worker import HANG, OUTSIDE, REFUSED, SIGNAL, SUCCEEDED, TRACEBACK, UNCLEAR, Input, Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process writes is seen through /proc")


def test_a_hundred_bad_inputs_end_well(tmp_path):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    words = ("-m", "tests.fuzz", "--inputs", "100", "--keep-going", "--keep", str(tmp_path))
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, refused, succeeded = map(
        int, re.findall(r"s: *(\d+) inputs, (\d+) refused with one line, (\d+) succeeded", done.stdout)[0]
    )
    assert inputs >= 100
    assert min(refused, succeeded) >= 10  # what is bad is told from what is not


def _writes(path, folder=None):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, dir_fd=folder))


def _refuses():
    print("onedomain: seed: got -1; allowed: from 0", file=sys.stderr)
    sys.exit(2)


BAD = {
    "traceback": (lambda: {}["no key"], TRACEBACK),
    "endless": (lambda: [None for _ in iter(int, 1)], HANG),
    "waiting": (lambda: signal.pause(), HANG),
    "signal": (lambda: os.kill(os.getpid(), 9), SIGNAL),
    "outside": (lambda: Path("../outside").write_text(""), OUTSIDE),
    "outside, by a folder": (lambda: _writes("outside", os.open("..", os.O_PATH)), OUTSIDE),
    "renamed to the outside": (lambda: Path("file").rename("../outside"), OUTSIDE),
    "program": (lambda: os.system("true"), OUTSIDE),
    "silent": (lambda: sys.exit(2), UNCLEAR),
    "another code": (lambda: sys.exit(7), UNCLEAR),
    "escape sequence": (lambda: print("\x1b[2J"), UNCLEAR),
    "refused": (_refuses, REFUSED),
    "well": (lambda: Path("inside").write_text(""), SUCCEEDED),
}


@pytest.mark.parametrize("name", BAD)
def test_how_a_command_ends_is_seen(name, tmp_path, monkeypatch):
    does, how = BAD[name]
    monkeypatch.setattr(cli, "main", does)
    monkeypatch.setattr(worker, "SECONDS", 0.1)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_text("content")
    watched = Worker(tmp_path, tmp_path / "made")
    assert watched.run(Input(("any",))).how == how
    watched.close()
