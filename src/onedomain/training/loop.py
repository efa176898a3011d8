"""The training loop: one batch of the source after the other, logged, checkpointed, and resumable to the bit."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onedomain.components.state import check, check_names
from onedomain.data.domain import Images, IntArray
from onedomain.data.files import open_own, os_errors_are_user_errors, to_json_lines, write_atomically
from onedomain.data.processes import StopRequest, stop_requests
from onedomain.data.progress import progress
from onedomain.errors import Interrupted, OnedomainError, TrainingDiverged, UserError
from onedomain.methods.base import Method
from onedomain.networks.distributed import alike, any_says, average, place, spread
from onedomain.runs.layout import CHECKPOINT, METRICS
from onedomain.runs.rows import read_metrics
from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from onedomain.training.pace import Pace, seconds_of_a_plain_step, tell
from onedomain.training.randomness import deterministic, private_randomness, seed_everything
from onedomain.training.snapshots import Snapshots
from onedomain.training.tracking import tracking

Watch = Callable[[int], None]
SECONDS_BETWEEN_SAVED_PARTS = 60.0  # of the work that a method does between two steps


def train(
    method: Method, *, shown: bool = True, track: str | None = None, watch: Watch = lambda done: None
) -> tuple[list[dict[str, Any]], float]:
    """Train a method that was set up to its last step, from its folder's checkpoint if there is one.

    `watch` is called after every step with the number of those done; what it draws at random changes nothing.

    Returns the rows of metrics.jsonl and the seconds that training took, resumed parts together. Everything random
    is a function of the seed and the step, never of what happened before: that is what makes resuming exact.
    """
    settings, source, seed = method.settings, method.source, method.seed
    folder = method.folder if place() == 0 else None  # of several processes the first one writes
    agreed = partial(any_says, device=method.device)
    batches = BalancedBatches if method.balanced else ShuffledBatches
    indices = batches(source.labels, settings.batch_size, seed)
    with private_randomness(), deterministic(method.device), stop_requests() as stop:
        keeper = Keeper(method, method.folder)
        start = keeper.restore()
        snapshots = Snapshots(method, source, folder, seed)
        if start == 0:
            spread(tensor for module in method.modules for tensor in module.state_dict().values())
            snapshots.take(0)
            keeper.save(0)  # a network of the user's own cannot be made again as it was
        journal = Journal(folder / METRICS if folder else None, start)
        pace = Pace(method, seconds_of_a_plain_step(method) if shown and start < settings.steps else 0.0)
        if shown and start < settings.steps:
            tell(method, start, pace.left(start))
        loss: dict[str, float] = {}  # what is shown beside the progress

        with (
            tracking(track if place() == 0 else None, folder, start, journal.rows) as tracker,
            progress(f"train {method.name}", settings.steps, start=start, shown=shown) as update,
        ):
            journal.tell = tracker.row
            for step in range(start, settings.steps):
                seed_everything(seed, step)
                prepared, begun = False, time.monotonic()
                for part in method.prepare(step):
                    pace.prepared(time.monotonic() - begun)
                    update(step, part.values, f"{part.what} {part.done:.0%}", pace.left(step))
                    if part.record is not None:
                        journal.record(step, *part.record)
                    late = keeper.seconds_since_saved > SECONDS_BETWEEN_SAVED_PARTS
                    stopping, late = agreed(stop.is_set(), late)
                    if stopping or late:
                        journal.write(step, keeper.seconds)
                        keeper.save(step)
                    if stopping:
                        raise interrupted(method, step, stop)
                    prepared, begun = True, time.monotonic()
                if prepared:
                    tracker.samples(step)
                begun = time.monotonic()

                seed_everything(seed, step)
                batch = method.varied(source.batch(indices(step), method.device))
                if step + 1 < settings.steps:
                    source.ask(indices(step + 1))
                method.set_rate(step)
                method.train_mode()
                journal.add(method.step(batch, step))
                average(b for module in method.modules for b in module.buffers() if b.is_floating_point())

                done = step + 1
                stopping = agreed(stop.is_set())[0] and done < settings.steps
                save = stopping or done == settings.steps or done % settings.checkpoint_every == 0
                if save or done % settings.log_every == 0:
                    loss = {"loss": journal.write(done, keeper.seconds)["loss"]}
                pace.stepped(done, time.monotonic() - begun)
                update(done, loss, left=pace.left(done))
                snapshots.take(done)
                watch(done)
                if save:
                    keeper.save(done)
                if stopping:
                    raise interrupted(method, done, stop)
    return journal.rows, keeper.seconds


class Keeper:
    """Saves and restores the state of a run; counts the seconds of training over all its resumed parts."""

    def __init__(self, method: Method, folder: Path | None) -> None:
        self.method, self.folder = method, folder
        self.before = 0.0
        self.begun = self.saved = time.monotonic()

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.begun

    @property
    def seconds_since_saved(self) -> float:
        return time.monotonic() - self.saved

    def restore(self) -> int:
        """Load the folder's checkpoint into the method, if there is one; the number of steps done."""
        if self.folder is None or not (self.folder / CHECKPOINT).exists():
            return 0
        path = self.folder / CHECKPOINT
        state = load_checkpoint(path, self.method.device)
        try:
            step, seconds = state["step"], float(state["seconds"])
            if type(step) is not int or not 0 <= step <= self.method.settings.steps:
                raise ValueError(f"step is {step!r} of {self.method.settings.steps}")
            if not 0 <= seconds < math.inf:
                raise ValueError(f"seconds are {seconds}")
            self.method.load_state_dict(state["method"])
            if self.method.scaler.is_enabled():
                own = self.method.scaler.state_dict()
                for name, value in check_names(own, state["scaler"], "scaler").items():
                    check(own[name], value, f"scaler.{name}")
                self.method.scaler.load_state_dict(state["scaler"])
            self.before = seconds
            return step
        except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, AttributeError) as error:
            reason = " ".join(str(error).split())[:100]
            raise UserError(
                str(path), f"is no checkpoint of this run ({reason})", "the file that this run wrote"
            ) from None

    def save(self, step: int) -> None:
        """Write the checkpoint, unless a weight is no longer finite: then the last good one is kept."""
        beside = [] if self.method.auxiliary is None else [*self.method.auxiliary.named_parameters()]
        for name, parameter in [*self.method.network.module.named_parameters(), *beside]:
            if not bool(parameter.isfinite().all()):
                kept = "" if self.folder is None else "; the last good checkpoint is kept"
                raise TrainingDiverged(f"{name} is no longer finite at step {step}{kept}; try a smaller learning_rate")
        weights = (tensor for module in self.method.modules for tensor in module.state_dict().values())
        if not alike(weights, self.method.device):
            raise OnedomainError(f"processes have other weights at step {step}: optimisers must be of `optimiser_for`")
        if self.folder is not None and place() == 0:
            state = {"step": step, "seconds": self.seconds, "method": self.method.state_dict()}
            state |= {"scaler": self.method.scaler.state_dict()} if self.method.scaler.is_enabled() else {}
            save_checkpoint(self.folder / CHECKPOINT, state)
        self.saved = time.monotonic()


def interrupted(method: Method, done: int, stop: StopRequest) -> Interrupted:
    saved = "" if method.folder is None else "; saved"
    return Interrupted(f"stopped at step {done} of {method.settings.steps}{saved}", stop.exit_code)


class ShuffledBatches:
    """The indices of each step's batch: epochs in an order shuffled by seed, cut into batches without a remainder.

    A function of the step alone. A batch that reaches the end of an epoch goes on with the next one.
    """

    def __init__(self, labels: IntArray | Images, batch_size: int, seed: int) -> None:
        self.count, self.batch_size = len(labels), batch_size
        count = self.count
        self.order = lru_cache(maxsize=2)(lambda epoch: np.random.default_rng([seed, epoch]).permutation(count))

    def __call__(self, step: int) -> IntArray:
        epochs, places = divmod(np.arange(step * self.batch_size, (step + 1) * self.batch_size), self.count)
        return np.concatenate([self.order(epoch)[places[epochs == epoch]] for epoch in np.unique(epochs)])


class BalancedBatches:
    """Batches that take the classes in turn: of each as many as of the others, give or take one.

    If a batch has no room for two images of each class, it holds two images of some of them. A
    function of the step alone. A class with few images comes round more often.
    """

    def __init__(self, labels: IntArray | Images, batch_size: int, seed: int) -> None:
        self.batch_size = batch_size
        of_images = np.asarray(labels)
        members = [np.flatnonzero(of_images == each) for each in np.unique(of_images)]
        self.members = members
        self.together = 1 if 2 * len(members) <= batch_size else 2

        def order(place: int, epoch: int) -> IntArray:
            return np.random.default_rng([seed, place, epoch]).permutation(members[place])

        self.order = lru_cache(maxsize=2 * len(members))(order)

    def __call__(self, step: int) -> IntArray:
        chosen = []
        for slot in range(step * self.batch_size, (step + 1) * self.batch_size):
            group, within = divmod(slot, self.together)
            turn, place = divmod(group, len(self.members))
            epoch, position = divmod(turn * self.together + within, len(self.members[place]))
            chosen.append(self.order(place, epoch)[position])
        return np.array(chosen)


class Journal:
    """Collects what steps log, and writes its means as one line of metrics.jsonl.

    Values stay on the device until a line is due, so that an accelerator is not made to wait at every step.
    """

    def __init__(self, path: Path | None, start: int) -> None:
        self.path = path
        self.pending: list[dict[str, torch.Tensor]] = []
        self.rows: list[dict[str, Any]] = []
        self.tell: Callable[[dict[str, Any]], None] = lambda row: None  # of every further row
        if path is not None:
            # A killed run has logged steps after its last checkpoint: they are repeated, and logged again.
            self.rows = [row for row in read_metrics(path) if row["step"] <= start]
            write_atomically(path, to_json_lines(self.rows))

    def add(self, values: dict[str, torch.Tensor]) -> None:
        self.pending.append(values)

    def write(self, done: int, seconds: float) -> dict[str, float]:
        """Means of what was logged since the last line, if any; raises if any of it is NaN or infinite."""
        means: dict[str, float] = {}
        if not self.pending:
            return means
        for name in self.pending[-1]:
            logged = [(number, values[name]) for number, values in enumerate(self.pending) if name in values]
            values = torch.stack([value for _, value in logged]).tolist()
            for (number, _), value in zip(logged, values, strict=True):
                if not math.isfinite(value):
                    self._diverged(name, value, done - len(self.pending) + number + 1)
            means[name] = math.fsum(values) / len(values)
        self.pending.clear()
        self._append({"step": done, "seconds": round(seconds, 3), "memory_mb": peak_memory_mb(), **means})
        return means

    def record(self, step: int, domain: str, values: Mapping[str, float]) -> None:
        """Keep measurements of a generated domain, once: after a kill it may be measured again."""
        if not any(row.get("domain") == domain for row in self.rows):
            self._append({"step": step, "domain": domain, **values})

    def _append(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.tell(row)
        if self.path is not None:
            with os_errors_are_user_errors(self.path), open_own(self.path, "a") as file:
                file.write(to_json_lines([row]))

    def _diverged(self, name: str, value: float, step: int) -> None:
        kept = "" if self.path is None else "; the last good checkpoint is kept"
        raise TrainingDiverged(f"{name} became {value} at step {step}{kept}; try a smaller learning_rate")


def peak_memory_mb() -> int:
    """The most memory this process has held so far; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(used / 2**20 if sys.platform == "darwin" else used / 2**10)
