"""Work in parallel processes, which end when their parent does; and how Ctrl-C asks a process to stop."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from onedomain.errors import OnedomainError

Task = TypeVar("Task")
Result = TypeVar("Result")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def started_together() -> int:
    """How many processes torchrun, or a launcher like it, started as one run."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def is_another() -> bool:
    """Whether this is one of several processes of a run, and not the first one."""
    return started_together() > 1 and os.environ["RANK"] != "0"


def results(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """The result of each task, in the order in which they end; with one process per core."""
    count = min(cores(), len(tasks))
    if count <= 1:
        yield from map(work, tasks)
        return
    # Not forked: a process that has used threads, as OpenCV and torch do, may hang when it is.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_settle) as pool:
        try:
            for future in as_completed([pool.submit(work, task) for task in tasks]):
                yield future.result()
        except BrokenProcessPool:
            raise OnedomainError("a process was killed, perhaps for lack of memory; run it again to go on") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _settle() -> None:
    """Leave Ctrl-C to the parent process, use one core, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import cv2

    cv2.setNumThreads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def end_when_unwatched() -> None:
    """End when nobody reads standard error any more: whoever watches this process was killed, and may begin another."""

    def watch() -> None:
        closed = select.poll()
        closed.register(2, 0)  # of a pipe that is written to: the other end is gone
        closed.poll()
        os._exit(1)

    if hasattr(select, "poll"):
        threading.Thread(target=watch, daemon=True).start()


class StopRequest(threading.Event):
    """Set by a signal, which decides the exit code."""

    exit_code = 128 + signal.SIGINT


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """An event that Ctrl-C or SIGTERM sets, so that the running step ends before the state is saved.

    A second Ctrl-C stops at once, unless there are several processes: torchrun repeats to them what they have heard.
    Outside the main thread Python delivers no signals: the event is never set.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number: int, frame: Any) -> None:
        if stop.is_set() and started_together() == 1:
            raise KeyboardInterrupt(number)
        stop.exit_code = 128 + number
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
