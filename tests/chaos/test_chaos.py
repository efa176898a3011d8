"""The short form of `make chaos`; and that it sees what is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process writes is seen through /proc")
# Renamed as a careless program would write: in the place itself, piece by piece.
CARELESS = """
    import os, sys
    def rename(old, new, *, src_dir_fd=None, dst_dir_fd=None):
        content = open(os.open(old, os.O_RDONLY, dir_fd=src_dir_fd), "rb").read()
        target = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=dst_dir_fd)
        with open(target, "wb") as file:
            file.write(content)
        os.unlink(old, dir_fd=src_dir_fd)
    os.rename = rename
    os.supports_dir_fd.add(rename)
    from tests.chaos.__main__ import main
    sys.exit(main())
"""


def run(*words):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_dozen_kills_lose_nothing():
    done = run("-m", "tests.chaos", "--kills", "12")
    assert done.returncode == 0, done.stdout + done.stderr
    kills, lost = re.findall(r"(\d+) kills in \d+ s: (\d+) lost", done.stdout)[0]
    assert int(kills) >= 12
    assert int(lost) == 0


def test_what_a_kill_destroys_is_found():
    done = run("-c", textwrap.dedent(CARELESS), "--kills", "40", "--only", "train erm")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train erm, killed at operation" in done.stdout
