"""A process that another one watches."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "import time; from onedomain.cli import output; output.prepare(); print('on', flush=True); time.sleep(60)"


@pytest.mark.parametrize("watched", [True, False])
def test_a_watched_process_ends_when_nobody_listens_any_more(watched):
    environment = {**os.environ, "ONEDOMAIN_PROGRESS": "json" if watched else ""}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"on\n"
        process.stderr.close()
        if watched:
            assert process.wait(20) == 1
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
            process.kill()
