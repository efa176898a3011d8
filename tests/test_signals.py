"""Ctrl-C and SIGTERM at any moment of a command, also while it still imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process catches is seen through /proc")


def catches(pid, number):
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


@pytest.mark.parametrize(
    ("number", "after"), [(signal.SIGINT, 0.0), (signal.SIGTERM, 0.0), (signal.SIGINT, 0.5), (signal.SIGTERM, 1.5)]
)
def test_a_command_that_is_stopped_says_so_in_one_line(tmp_path, number, after):
    command = [sys.executable, "-m", "onedomain", "train", "--steps", "100000", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not catches(process.pid, signal.SIGTERM):  # Python itself catches SIGINT
        time.sleep(0.005)
    time.sleep(after)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("onedomain: stopped")


def test_an_import_that_would_lose_an_exception_does_not_lose_a_stop(tmp_path):
    """As of extensions written in C: what is raised in them becomes an ImportError, and that is passed over."""
    (tmp_path / "careless.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    program = """
import signal
from onedomain import __main__
signal.signal(signal.SIGINT, __main__._stop)
try:
    import careless
except BaseException:
    pass
print("went on")
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "onedomain: stopped\n")


def test_outside_of_imports_a_command_ends_by_itself(onedomain, monkeypatch):
    def stopped():
        raise KeyboardInterrupt(signal.SIGTERM)

    monkeypatch.setattr("onedomain.methods.method_names", stopped)
    code, _, said = onedomain("methods")
    assert (code, said) == (143, "onedomain: stopped\n")
