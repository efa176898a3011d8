"""A grid on a real Ray cluster of two nodes, both on this machine: one is killed, storage is not shared, Ctrl-C."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from shutil import copy

import pytest

from onedomain.cli.reproduce_show import run_and_show
from onedomain.errors import UserError
from onedomain.reporting.reproduce.columns import score
from onedomain.reporting.reproduce.declare import Row, Scale, Table
from onedomain.reporting.reproduce.grid import Request
from onedomain.runs import cluster as module
from onedomain.runs.cluster import Cluster
from onedomain.runs.job import Job
from onedomain.runs.layout import CHECKPOINT, METRICS, WEIGHTS
from onedomain.runs.sweep import run_jobs
from tests.conftest import ROOT
from tests.runs.test_sweep import Told

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'onedomain[cluster]'"
)
ENTRY_POINTS = """\
[onedomain.methods]
slow-erm = slow_package:SlowERM
[onedomain.methods.adapt]
their-adaptation = their_package:TheirAdaptation
[onedomain.networks]
their-network = their_package:TheirNetwork
[onedomain.benchmarks]
their-benchmark = their_package:BENCHMARK
"""
SLOW = """
import os
import time
from onedomain.methods.erm import ERM

class SlowERM(ERM):
    "ERM with a pause in every step."

    def step(self, batch, step):
        time.sleep(float(os.environ.get("PAUSE", "0.02")))
        return super().step(batch, step)
"""
SETTINGS = {"steps": 250, "log_every": 5, "checkpoint_every": 20}
SLOW_ERM = Row("ERM, slowly", "slow-erm", SETTINGS)
TABLE = Table("slow", "Slowly", "their-benchmark", (SLOW_ERM,), (score("others", "others"),))
FULL = Scale("full")
RUN = f"slow-erm-{'-'.join(f'{name}-{value}' for name, value in SETTINGS.items())}"


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory):
    """A small benchmark and a slow method, installed so that every process on every node finds them."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "slow_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "slow_package.py").write_text(SLOW)
    copy(ROOT / "tests" / "third_party" / "their_package.py", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (folder, ROOT / "src"))))
        yield folder


@pytest.fixture(scope="module")
def nodes(site):
    """A cluster with a head of one CPU, to which nodes may be added."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster as Nodes

    quickly = {"health_check_period_ms": 500, "health_check_failure_threshold": 3, "health_check_initial_delay_ms": 0}
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20, "_system_config": quickly}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    yield nodes
    nodes.shutdown()


def rows(folder: Path) -> list[str]:
    return (folder / METRICS).read_text().splitlines() if (folder / METRICS).exists() else []


def wait_until(condition, seconds=90.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_ray
def test_the_runs_of_a_killed_node_are_resumed_on_another(nodes, tmp_path, monkeypatch, onedomain):
    other = nodes.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    out = tmp_path / "grid"
    folders = [out / f"{SLOW_ERM.name}-{seed}" for seed in range(3)]
    before: dict[Path, list[str]] = {}

    def kill() -> None:
        wait_until(lambda: sum(len(rows(folder)) >= 10 for folder in folders) == 2)
        before.update({folder: rows(folder) for folder in folders if rows(folder)})
        nodes.remove_node(other, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    run_and_show(Request(TABLE, FULL, seeds=3, out=str(out), cluster=Cluster(nodes.address)), as_json=True)
    killer.join()

    logs = {folder: (out / "logs" / f"{folder.name}.log").read_text() for folder in folders}
    [lost] = [folder for folder in before if logs[folder].count("$ ") == 2]
    assert all("in shared storage" in log for log in logs.values())
    assert logs[lost].count("nothing to resume") == 1  # when it began, and not again
    saved = len(before[lost]) // 4 * 4  # lines up to the last checkpoint: they carry the time, and would differ
    assert saved >= 8
    assert rows(lost)[:saved] == before[lost][:saved]
    table = json.loads((out / "table.json").read_text())
    assert (table["failed"], table["rows"][0]["seeds"]) == ([], [0, 1, 2])

    monkeypatch.setenv("PAUSE", "0")
    again, seed = tmp_path / "undisturbed", lost.name[-1]
    words = ["--benchmark", "their-benchmark", "--method", "slow-erm", "--seed", seed, "--threads", 1, "--no-evaluate"]
    given = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    code, _, said = onedomain("train", *words, *given, "--out", again)
    assert code == 0, said
    assert (lost / WEIGHTS).read_bytes() == (again / WEIGHTS).read_bytes()


@needs_ray
def test_without_shared_storage_folders_are_sent_and_brought_back(nodes, tmp_path, monkeypatch):
    """A run that is stopped comes back with what it saved, goes on from there, and is sent to be adapted."""
    from contextlib import nullcontext

    monkeypatch.setattr(module, "probe", lambda folder: nullcontext(tmp_path / "seen by no node"))
    monkeypatch.setenv("PAUSE", "0.1")  # time enough to be stopped in, on a busy machine too
    onedomain, run, adapted = (sys.executable, "-m", "onedomain"), tmp_path / "run", tmp_path / "adapted"
    given = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    train = ("train", "--benchmark", "their-benchmark", "--method", "slow-erm", *given, "--out", str(run), "--resume")
    adapt = ("adapt", str(run), "--target", "others", "--shots", "2", "--method", "their-adaptation")
    trains = Job("train", (*onedomain, *train), tmp_path / "train.log", 10.0, run)
    adapts = Job("adapt", (*onedomain, *adapt, "--out", str(adapted)), tmp_path / "adapt.log", 5.0, adapted, (run,))
    told = Told()

    def interrupt() -> None:
        wait_until(
            lambda: any(what == "train slow-erm" and done >= 40 for what, done, *_ in told.seen.get("train", ()))
        )
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with Cluster(nodes.address).connected(tmp_path) as cluster:
        grid = run_jobs([trains, adapts], 2, told, place=cluster)
        assert grid.stopped
        assert grid.ended == []  # neither done nor failed
        assert told.stops
        assert "stopped at step" in trains.log.read_text()
        assert (run / CHECKPOINT).exists()
        assert not (run / WEIGHTS).exists()
        assert not adapted.exists()
        kept = rows(run)
        assert len(kept) >= 8
        monkeypatch.setenv("PAUSE", "0")
        for job in (trains, adapts):
            assert run_jobs([job], 1, told, place=cluster).failed == []
    log = trains.log.read_text()
    assert "with folders sent and brought back" in log
    assert log.count("nothing to resume") == 1
    assert len(rows(run)) >= 50
    assert rows(run)[: len(kept)] == kept
    assert (adapted / WEIGHTS).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "adapted", "train.log", "adapt.log"}


REPORT = """
import os, sys, onedomain
print(onedomain.__file__, os.environ["ONEDOMAIN_NOTE"], "GPUs:", os.environ["CUDA_VISIBLE_DEVICES"])
sys.exit("onedomain: the loss became nan")
"""
STUBBORN = """
import os, signal, sys, time
from onedomain.cli import output
output.prepare()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("process", os.getpid(), file=sys.stderr, flush=True)
time.sleep(120)
"""


@needs_ray
def test_a_job_has_our_version_and_variables_and_a_second_stop_kills_what_does_not_end(nodes, tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDOMAIN_NOTE", "sent")
    reports, stubborn = (
        Job(name, (sys.executable, "-c", program), tmp_path / f"{name}.log", 1.0)
        for name, program in (("reports", REPORT), ("stubborn", STUBBORN))
    )

    def of_stubborn() -> list[str]:
        return re.findall(r"process (\d+)\n", stubborn.log.read_text()) if stubborn.log.exists() else []

    def interrupt() -> None:
        wait_until(of_stubborn)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    with Cluster(nodes.address).connected(tmp_path) as cluster:
        [ended] = run_jobs([reports], 1, Told(), place=cluster).ended
        assert ended.error == "the loss became nan"
        [printed] = [line for line in reports.log.read_text().splitlines() if line.endswith("sent GPUs: ")]
        assert not printed.startswith(str(ROOT))
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            run_jobs([stubborn], 1, Told(), place=cluster)
        [process] = of_stubborn()
        wait_until(lambda: not Path("/proc", process).exists(), seconds=30)


PROGRAM = """
    from onedomain.cli import main
    from onedomain.reporting.reproduce.tables import SCALES, TABLES
    from tests.runs.test_cluster import FULL, TABLE
    TABLES["slow"] = TABLE
    main()
"""


@needs_ray
def test_a_started_cluster_ends_with_the_command_and_ctrl_c_says_how_to_go_on(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(ROOT)]), "PAUSE": "0.1"}
    environment.pop("RAY_ADDRESS", None)
    words = ["reproduce", "slow", "--scale", "full", "--seeds", "2", "--out", str(tmp_path / "out"), "--on", "ray"]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), *words],
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as in the background of a shell
    )
    wait_until(lambda: rows(tmp_path / "out" / f"{SLOW_ERM.name}-0") or process.poll() is not None)
    started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert started
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: Ray's own processes get it, too
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    go_on = f"onedomain reproduce slow --scale full --seeds 2 --out {tmp_path / 'out'} --on ray"
    assert said.splitlines()[-1] == f"onedomain: stopped with 2 of 2 runs to go; go on with: {go_on}"
    assert (tmp_path / "out" / f"{SLOW_ERM.name}-0" / CHECKPOINT).exists()
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


@needs_ray
@pytest.mark.parametrize(
    ("cpus", "gpus", "line"),
    [
        (64, 0, r"--cpus-per-run: no node has 64 CPUs and 0 GPUs; allowed: what a node has: 1 CPUs and 0 GPUs"),
        (1, 0.5, r"--gpus-per-run: no node has 1 CPUs and 0.5 GPUs; allowed: what a node has: 1 CPUs and 0 GPUs"),
    ],
)
def test_more_than_any_node_has_is_refused(nodes, tmp_path, cpus, gpus, line):
    with (
        pytest.raises(UserError, match=re.escape(line)),
        Cluster(nodes.address, cpus, gpus).connected(tmp_path / "out"),
    ):
        pass


@needs_ray
def test_what_listens_and_is_no_cluster_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_TO_ANSWER", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster = Cluster(f"127.0.0.1:{server.getsockname()[1]}")
        cluster.refuse_unreachable()
        with (
            pytest.raises(UserError, match="--address: no cluster .* answers at 127.0.0.1"),
            cluster.connected(tmp_path),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


@needs_ray
@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--on", "rya"], "--on: 'rya' is not known, did you mean 'ray'?; allowed: local, ray"),
        (["--address", "a:1"], "--address: given without --on ray; allowed: with it"),
        (["--cpus-per-run", 2], "--cpus-per-run: given without --on ray; allowed: with it"),
        (["--on", "ray", "--cpus-per-run", 0], "--cpus-per-run: got 0; allowed: a whole number from 1"),
        (["--on", "ray", "--gpus-per-run", -1], "--gpus-per-run: got -1; allowed: a whole number from 0, or a part"),
        (["--on", "ray", "--gpus-per-run", 1.5], "--gpus-per-run: got 1.5; allowed: a whole number from 0, or a part"),
        (["--on", "ray", "--address", "ray://a:1"], "--address: got 'ray://a:1'; allowed: HOST:PORT of a cluster"),
        (["--on", "ray", "--address", "127.0.0.1:9"], "--address: no cluster at 127.0.0.1:9 (connection refused)"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(options, line, tmp_path, monkeypatch, onedomain):
    monkeypatch.chdir(tmp_path)
    code, out, error = onedomain("reproduce", "digits", *options)
    assert (code, out) == (2, "")
    assert error.startswith(f"onedomain: {line}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_address_of_the_environment_is_named_and_ray_that_is_not_installed(monkeypatch, onedomain):
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    code, _, error = onedomain("reproduce", "digits", "--on", "ray")
    assert (code, error.partition(" (")[0]) == (2, "onedomain: RAY_ADDRESS: no cluster at 127.0.0.1:9")
    request = Request(TABLE, FULL, cluster=Cluster("head:6379", cpus=4, gpus=0.5))
    assert request.to_go_on() == (
        "onedomain reproduce slow --scale full --seeds 3 "
        "--on ray --address head:6379 --cpus-per-run 4 --gpus-per-run 0.5"
    )
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    code, _, error = onedomain("reproduce", "digits", "--on", "ray")
    assert (code, error) == (2, "onedomain: --on: ray is not installed; allowed: pip install 'onedomain[cluster]'\n")
