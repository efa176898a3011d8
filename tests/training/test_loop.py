from __future__ import annotations

import copy
import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
import torch

from onedomain.errors import Interrupted, TrainingDiverged, UserError
from onedomain.methods.erm import ERM
from onedomain.networks import own_network
from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from onedomain.training.loop import ShuffledBatches, train
from tests.conftest import ROOT, TinyNet, set_up

CPU = torch.device("cpu")

# A run of its own in a process of its own, to be killed. Its dataset draws from every random generator there is.
SCRIPT = """
import random, sys
import numpy as np, torch
torch.set_num_threads(1)
import onedomain as od
from tests.conftest import TinyNet, make_tiny, set_up
tiny = make_tiny()
class Noisy:
    def __len__(self): return len(tiny)
    def __getitem__(self, i):
        noise = torch.rand(1, 8, 8) + np.random.rand() + random.random()
        return tiny.batch([i]).images[0] + 0.1 * noise, int(tiny.labels[i])
torch.manual_seed(1)
od.fit(od.ERM(learning_rate=1e-2, checkpoint_every=1, batch_size=7), Noisy(), network=TinyNet(), steps=int(sys.argv[2]),
       seed=5, out=sys.argv[1], resume=True, progress=False)
"""


def begun(domain, module=None, kind=ERM, seed=0, folder=None, **settings):
    torch.manual_seed(0)
    method = kind(**{"steps": 20, "batch_size": 8, "log_every": 5, **settings})
    return set_up(method, own_network(module or TinyNet()), domain, seed=seed, folder=folder)


def start(folder, steps) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(steps)], env=environment, cwd=ROOT)


def weights(folder) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_bits(tmp_path):
    steps, rng = 500, random.Random(0)
    assert start(tmp_path / "whole", steps).wait() == 0
    kills = 0
    while True:
        process = start(tmp_path / "killed", steps)
        done_before = len(list_steps(tmp_path / "killed"))
        deadline = time.monotonic() + 60
        while (
            process.poll() is None
            and len(list_steps(tmp_path / "killed")) < done_before + rng.randint(1, 60)
            and time.monotonic() < deadline
        ):
            time.sleep(rng.uniform(0, 0.05))
        if process.poll() is not None:
            assert process.returncode == 0
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        if kills == 4:
            assert start(tmp_path / "killed", steps).wait() == 0
            break
    assert kills >= 2
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert not [entry for entry in (tmp_path / "killed").iterdir() if entry.name.startswith(".")]
    logged = [row["step"] for row in rows(tmp_path / "killed")]
    assert logged == sorted(set(logged))
    assert logged[-1] == steps


def rows(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def list_steps(folder) -> list[str]:
    path = folder / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_ctrl_c_saves_after_the_step_and_resume_goes_on_exactly(tmp_path, tiny):
    class Stopped(ERM):
        def step(self, batch, step):
            self.count = getattr(self, "count", 0) + 1
            if self.count == 13:
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(batch, step)

    whole = begun(tiny, seed=3)
    train(whole, shown=False)
    with pytest.raises(Interrupted, match="stopped at step 13 of 20; saved"):
        train(begun(tiny, kind=Stopped, seed=3, folder=tmp_path), shown=False)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 13
    resumed = begun(tiny, seed=3, folder=tmp_path)
    train(resumed, shown=False)
    for ours, theirs in zip(resumed.network.module.parameters(), whole.network.module.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_network_of_ones_own_resumes_from_its_first_weights_even_without_a_checkpoint_of_a_step(tmp_path, tiny):
    class Killed(BaseException):
        pass

    class Broken(ERM):
        def step(self, batch, step):
            raise Killed

    first = TinyNet()
    whole = begun(tiny, copy.deepcopy(first), seed=3)
    train(whole, shown=False)
    with pytest.raises(Killed):
        train(begun(tiny, first, kind=Broken, seed=3, folder=tmp_path), shown=False)
    torch.manual_seed(99)
    resumed = begun(tiny, TinyNet(), seed=3, folder=tmp_path)
    train(resumed, shown=False)
    for ours, theirs in zip(resumed.network.module.parameters(), whole.network.module.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_module_in_eval_mode_is_trained_in_train_mode(tiny):
    module = TinyNet().eval()
    train(begun(tiny, module), shown=False)
    assert module.norm.num_batches_tracked == 20


def test_weights_that_are_no_numbers_are_never_saved(tmp_path, tiny):
    class Exploding(ERM):
        def step(self, batch, step):
            logged = super().step(batch, step)
            self.count = getattr(self, "count", 0) + 1
            if self.count == 12:
                with torch.no_grad():
                    self.network.module.head.bias[0] = float("inf")
            return logged

    method = begun(tiny, kind=Exploding, folder=tmp_path, steps=12, checkpoint_every=4)
    with pytest.raises(TrainingDiverged, match="head.bias is no longer finite at step 12; the last good"):
        train(method, shown=False)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 8


@pytest.mark.parametrize("state", [{}, {"step": 1, "seconds": 0.0, "method": None}, {"method": {"network": {}}}])
def test_a_checkpoint_of_something_else_is_refused(tmp_path, tiny, state):
    save_checkpoint(tmp_path / "checkpoint.pt", state)
    with pytest.raises(UserError, match="checkpoint.pt: is no checkpoint of this run"):
        train(begun(tiny, folder=tmp_path), shown=False)


def test_the_signal_handlers_are_given_back(tiny):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    train(begun(tiny), shown=False)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path, tiny, bad):
    class Broken(ERM):
        def step(self, batch, step):
            self.count = getattr(self, "count", 0) + 1
            logged = super().step(batch, step)
            return {"loss": logged["loss"] * bad} if self.count == 13 else logged

    method = begun(tiny, kind=Broken, folder=tmp_path, checkpoint_every=4, log_every=50)
    with pytest.raises(TrainingDiverged, match=r"loss became (nan|inf) at step 13; .*learning_rate"):
        train(method, shown=False)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 12


def test_same_seed_same_weights_another_seed_others(tiny):
    def trained(seed):
        method = begun(tiny, seed=seed)
        train(method, shown=False)
        return torch.cat([parameter.flatten() for parameter in method.network.module.parameters()])

    assert torch.equal(trained(0), trained(0))
    assert not torch.equal(trained(0), trained(1))


def test_the_callers_random_numbers_are_left_alone(tiny):
    def draw():
        return random.random(), np.random.rand(), float(torch.rand(()))

    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = draw()
    method = begun(tiny)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    train(method, shown=False)
    assert draw() == expected


def test_metrics_are_means_over_the_steps_of_a_line(tmp_path, tiny):
    losses = []

    class Recorded(ERM):
        def step(self, batch, step):
            logged = super().step(batch, step)
            losses.append(float(logged["loss"]))
            return logged

    method = begun(tiny, kind=Recorded, folder=tmp_path, steps=12)
    train(method, shown=False)
    assert [row["step"] for row in rows(tmp_path)] == [5, 10, 12]
    assert rows(tmp_path)[1]["loss"] == pytest.approx(np.mean(losses[5:10]))


def test_memory_does_not_grow_with_the_number_of_steps(tiny):
    def peak(steps):
        method = begun(tiny, steps=steps, log_every=100)
        tracemalloc.start()
        train(method, shown=False)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(100)
    assert peak(1500) < peak(300) + 100_000


def test_a_resume_from_a_broken_checkpoint_is_refused_and_loses_nothing(tmp_path, tiny):
    train(begun(tiny, folder=tmp_path), shown=False)
    (tmp_path / "checkpoint.pt").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match="checkpoint.pt: is not a whole checkpoint"):
        train(begun(tiny, folder=tmp_path), shown=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("count", "size"), [(10, 3), (7, 7), (5, 12)])
def test_batches_go_through_every_image_before_any_comes_again(count, size):
    batches = ShuffledBatches(np.zeros(count, np.int64), size, seed=0)
    drawn = np.concatenate([batches(step) for step in range(count)])
    for epoch in drawn.reshape(-1, count):
        assert sorted(epoch) == list(range(count))
    assert all(len(batches(step)) == size for step in range(count))


def test_a_batch_depends_on_seed_and_step_alone():
    one, other = ShuffledBatches(np.zeros(50, np.int64), 8, seed=1), ShuffledBatches(np.zeros(50, np.int64), 8, seed=1)
    for step in (0, 3):
        one(step)
    assert np.array_equal(one(11), other(11))
    assert not np.array_equal(one(11), ShuffledBatches(np.zeros(50, np.int64), 8, seed=2)(11))
