"""A grid of runs on a Ray cluster, which places them, and starts those again whose worker or node is lost."""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onedomain.data.processes import cores
from onedomain.errors import OnedomainError, UserError
from onedomain.runs.job import Child, Job
from onedomain.runs.node import BEGINS, fixed_to, probe, run_job, unpack

ADDRESS = "RAY_ADDRESS"
FOUND = "auto"  # the address that stands for the cluster that runs on this machine
MOST_LOSSES = 3  # times that a job may be lost with its worker or node
SECONDS_TO_REACH, SECONDS_TO_ANSWER = 5.0, 20.0
STORE = 80 * 2**20  # bytes of a started cluster's object store, which holds little: all is on this machine


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster, to be reached at an address or else to be started, and what a run takes of it."""

    address: str | None = None
    cpus: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if find_spec("ray") is None:
            raise UserError("--on", "ray is not installed", "pip install 'onedomain[cluster]'")
        if self.cpus < 1:
            raise UserError("--cpus-per-run", f"got {self.cpus}", "a whole number from 1")
        if not 0 <= self.gpus < math.inf or (self.gpus > 1 and self.gpus % 1):
            raise UserError("--gpus-per-run", f"got {self.gpus:g}", "a whole number from 0, or a part of one GPU")

    @property
    def existing(self) -> str | None:
        """The address of a cluster that runs already."""
        return self.address or os.environ.get(ADDRESS) or None

    @property
    def words(self) -> list[str]:
        """The options that say it."""
        given = {"--address": self.address, "--cpus-per-run": self.cpus, "--gpus-per-run": f"{self.gpus:g}"}
        usual = (None, 1, "0")
        return ["--on", "ray", *(str(word) for pair in given.items() if pair[1] not in usual for word in pair)]

    def refuse_unreachable(self) -> None:
        """Tell at once if nothing listens at the address."""
        if self.existing in (None, FOUND):
            return
        host, _, port = str(self.existing).rpartition(":")
        if not port.isdigit() or "/" in host:
            raise self._refused(
                f"got {self.existing!r}", "HOST:PORT of a cluster that this machine belongs to, or auto"
            )
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_REACH).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._refused(f"no cluster at {self.existing} ({reason.lower()})") from None

    @contextmanager
    def connected(self, folder: Path) -> Iterator[Connection]:
        """Jobs may be begun there that write into `folder`. A cluster that is started for them ends with them."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        if not self.existing and "ray" not in sys.modules:  # which reads this when it is imported
            # What is started listens on the network: a password keeps everybody else out.
            os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
        import ray
        from ray.exceptions import RayError

        try:
            try:
                ray.init(**self._how(), log_to_driver=False, logging_level=logging.ERROR)
            except (RayError, ConnectionError, RuntimeError, ValueError) as error:
                raise self._refused(f"no cluster can be used ({' '.join(str(error).split())[:200]})") from None
            with probe(folder) as seen:
                yield Connection(self, seen)
        except RayError as error:
            raise OnedomainError(f"the cluster was lost ({_first_line(error)}); the same command goes on") from error
        finally:
            ray.shutdown()

    def _how(self) -> dict[str, Any]:
        """What Ray is told to join the cluster, or to start one."""
        if not self.existing:
            return {"address": "local", "num_cpus": cores(), "object_store_memory": STORE, "include_dashboard": False}
        # Ray waits for minutes for what listens but is no cluster: a process of its own can be ended before.
        words = (sys.executable, "-c", f"import ray; ray.init({self.existing!r})")
        try:
            subprocess.run(words, timeout=SECONDS_TO_ANSWER, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            given = f"no cluster that this machine belongs to answers at {self.existing} in {SECONDS_TO_ANSWER:.0f} s"
            raise self._refused(given) from None
        own = {name: value for name, value in os.environ.items() if name.startswith("ONEDOMAIN_")}
        # Whichever version a node has, it runs this one.
        sent = {"py_modules": [str(Path(__file__).parents[1])], "env_vars": own}
        return {"address": self.existing, "runtime_env": sent}

    def _refused(
        self, given: str, allowed: str = "what `ray start --head` shows, or none to start one here"
    ) -> UserError:
        return UserError("--address" if self.address or not self.existing else ADDRESS, given, allowed)


class Connection:
    """A cluster that takes jobs."""

    def __init__(self, cluster: Cluster, seen: Path) -> None:
        import ray

        all_nodes: Any = ray.nodes  # which has no types
        alive = [node["Resources"] for node in all_nodes() if node["Alive"]]
        nodes = [(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in alive]
        if not any(cpus >= cluster.cpus and gpus >= cluster.gpus for cpus, gpus in nodes):
            option = "--gpus-per-run" if cluster.gpus > max(gpus for _, gpus in nodes) else "--cpus-per-run"
            offers = " or ".join(sorted({f"{cpus:g} CPUs and {gpus:g} GPUs" for cpus, gpus in nodes}))
            wanted = f"no node has {cluster.cpus} CPUs and {cluster.gpus:g} GPUs"
            raise UserError(option, wanted, f"what a node has: {offers}")
        home = ray.get_runtime_context().get_node_id()
        self.said: Any = ray.remote(_Said).options(num_cpus=0, scheduling_strategy=fixed_to(home)).remote()
        self.given = self.said, home, Path.cwd(), seen, cluster.gpus > 0
        resources: dict[str, Any] = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus}
        self.run: Any = ray.remote(**resources, max_retries=MOST_LOSSES)(run_job)
        self.tasks: dict[str, _Task] = {}  # that have not ended

    def begin(self, job: Job) -> Child:
        task = self.tasks[job.name] = _Task(job, self)
        return task

    def look(self) -> None:
        import ray

        for name, line in ray.get(self.said.heard.remote()):
            task = self.tasks.get(name)  # a node that was given up may still say something
            if task and line.startswith(BEGINS):
                task.begins(line.removeprefix(BEGINS))
            elif task:
                task.said(line)


class _Task(Child):
    """A job on a cluster."""

    def __init__(self, job: Job, connection: Connection) -> None:
        super().__init__(job)
        self.connection = connection
        self.ref = connection.run.options(name=job.name).remote(job, *connection.given)

    @property
    def ended(self) -> bool:
        import ray

        return bool(ray.wait([self.ref], timeout=0, fetch_local=False)[0])

    def _ask_to_end(self) -> None:
        import ray

        ray.cancel(self.ref, recursive=False)

    def kill(self) -> None:
        import ray

        ray.cancel(self.ref, force=True)
        self.log.close()

    def _result(self) -> tuple[int, str]:
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            code, printed, folder = ray.get(self.ref)
            self.connection.look()  # what it said last
        except RayTaskError as error:
            return 0, _first_line(error.cause or error)
        except RayError as error:
            return 0, f"lost with its worker or node ({_first_line(error)})"
        finally:
            del self.connection.tasks[self.job.name]
        self.log.write(printed)
        if folder is not None and self.job.folder:
            unpack(folder, self.job.folder)
        return code, ""


class _Said:
    """An actor beside the command: what running jobs said, until it is fetched."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def say(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def heard(self) -> list[tuple[str, str]]:
        lines, self.lines = self.lines, []
        return lines


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
