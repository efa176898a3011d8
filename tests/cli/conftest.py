"""A run that the tests of several commands use."""

from __future__ import annotations

import subprocess
import sys

import pytest

QUICK = ["train", "--benchmark", "digits-lite", "--steps", "2", "--threads", "1"]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run of two steps on the embedded benchmark, made by the command in a process of its own."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    done = subprocess.run([sys.executable, "-m", "onedomain", *QUICK, "--out", folder, "--json"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return folder, done
