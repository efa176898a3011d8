"""A grid of runs: one process per run, on this machine or where Ray places it, watched through its progress lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from onedomain.data.processes import stop_requests
from onedomain.runs.job import Child, Ended, Job, Process, RunProgress

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Grid:
    """What has ended, in that order, and whether the others were stopped on request."""

    ended: list[Ended]
    stopped: int  # what to exit with if they were; 0 if not

    @property
    def failed(self) -> list[Ended]:
        return [outcome for outcome in self.ended if outcome.error]


class Board(Protocol):
    """What is told of a grid of runs while it goes."""

    def begun(self, name: str) -> None: ...

    def ended(self, run: Ended) -> None: ...

    def show(self, running: Sequence[RunProgress], share: float, seconds_left: float) -> None: ...

    def stopping(self) -> None: ...


class Feed(Protocol):
    """Runs that follow from how others went."""

    @property
    def seconds_to_come(self) -> float:
        """How long the runs are expected to take that were not handed out yet."""

    def next(self) -> Job | None:
        """A further run; none, as long as none of those that go has ended."""

    def goes_on(self, name: str, done: int, score: float) -> bool:
        """Whether a run is worth going on with, which says how good it is so far."""

    def ended(self, run: Ended) -> Ended:
        """Take in how a run ended; what is told of it."""


class Place(Protocol):
    """Where jobs run, if not in processes of this one."""

    def begin(self, job: Job) -> Child: ...

    def look(self) -> None:
        """Take in what the jobs said since the last look."""


def run_jobs(
    jobs: Sequence[Job],
    parallel: int,
    board: Board,
    keep_open: Sequence[int] = (),
    place: Place | None = None,
    feed: Feed | None = None,
) -> Grid:
    """Run all jobs, and those of a feed, at most so many handed out at a time; one that fails does not stop the others.

    Ctrl-C or SIGTERM asks the running ones to save and end, and begins no others; a second Ctrl-C kills them.
    `keep_open` are file descriptors that processes on this machine inherit.
    """
    jobs, waiting, running, told, ended = [*jobs], [*jobs], list[Child](), set[str](), list[Ended]()
    expected = taken = 60.0  # as if a minute had gone as expected: the first look is no surprise
    with stop_requests() as stop:
        try:
            while True:
                while feed and len(running) + len(waiting) < parallel and not stop.is_set() and (job := feed.next()):
                    jobs.append(job)
                    waiting.append(job)
                if not running and (stop.is_set() or not waiting):
                    break
                while waiting and len(running) < parallel and not stop.is_set():
                    job = waiting.pop(0)
                    running.append(place.begin(job) if place else Process(job, keep_open))
                if place:
                    place.look()
                over = [child for child in running if child.ended]
                for child in running:  # elsewhere a job may wait for its turn
                    if child.job.name not in told and (child.begun is not None or child in over):
                        told.add(child.job.name)
                        board.begun(child.job.name)
                at_once = max(1, sum(child.begun is not None for child in running))
                for child in running:
                    if feed and not all(feed.goes_on(child.job.name, *told) for told in child.new_scores()):
                        child.ask_to_end()
                if stop.is_set():
                    board.stopping()
                    for child in running:
                        child.ask_to_end()
                for child in over:
                    running.remove(child)
                    outcome = child.outcome()
                    if stop.is_set() and outcome.error:
                        continue  # it was asked to end before its time
                    if child.asked and outcome.error:
                        outcome = replace(outcome, error="", early=True)
                    if feed:
                        for last in child.new_scores():
                            feed.goes_on(outcome.name, *last)
                        outcome = feed.ended(outcome)
                    ended.append(outcome)
                    expected += child.job.seconds
                    taken += outcome.seconds
                    board.ended(outcome)
                left = [(1 - child.share) * child.job.seconds for child in running]
                to_come = feed.seconds_to_come if feed else 0.0
                to_do = sum(left) + sum(job.seconds for job in waiting) + to_come
                done = sum(child.job.seconds for child in running) - sum(left)
                pace = (taken + sum(child.seconds for child in running)) / (expected + done)
                share = 1 - to_do / max(sum(job.seconds for job in jobs) + to_come, 1e-9)
                shown = [child.progress for child in running if child.begun is not None]
                board.show(shown, share, pace * max([*left, to_do / at_once]))
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for child in running:
                child.kill()
    return Grid(ended, stopped=stop.exit_code if stop.is_set() and (feed or len(ended) < len(jobs)) else 0)
