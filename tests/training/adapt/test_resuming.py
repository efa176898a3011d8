"""An adaptation that was stopped: gone on with, bit for bit, and only with the same one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

import onedomain as od
from onedomain.methods.adapt import adaptation_class, adaptation_names
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny
from tests.training.adapt.test_adapt import QUICK, adapt

VARIED = {"vary": 1.0, "invert": 0.25}


@contextmanager
def killed_after(steps, kind, monkeypatch):
    """Whatever is adapted by `kind` meanwhile is killed after so many steps."""
    original, done = kind.step, []

    def killed(self, batch, step):
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(1)
        return original(self, batch, step)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.mark.parametrize("settings", [{}, VARIED])
@pytest.mark.parametrize("name", adaptation_names())
@pytest.mark.parametrize("moment", [2, 5, 10])
def test_killed_and_resumed_it_ends_with_the_same_bits(run, tmp_path, monkeypatch, name, settings, moment):
    kind = adaptation_class(name)
    monkeypatch.setitem(QUICK, name, {**QUICK[name], **settings, "checkpoint_every": 3})
    adapt(run, name, out=tmp_path / "whole", test=make_dim(30, seed=5))
    with killed_after(moment, kind, monkeypatch):
        adapt(run, name, out=tmp_path / "killed", test=make_dim(30, seed=5))
    with pytest.raises(od.UserError, match="has not finished"):
        od.load(tmp_path / "killed", network=TinyNet())
    adapt(run, name, out=tmp_path / "killed", test=make_dim(30, seed=5), resume=True)
    for file in ("model.safetensors", "calibration.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes(), file


def test_only_the_same_adaptation_is_resumed(run, dim, tmp_path):
    adapt(run, out=tmp_path / "b")
    adapt(run, out=tmp_path / "b", resume=True)
    with pytest.raises(od.UserError, match="out: .* exists and is not empty"):
        adapt(run, out=tmp_path / "b")
    for changes, message in [
        ({"shots": 5}, "shots: is 5 now, and was 4"),
        ({"seed": 1}, "draw: is 1 now, and was 0"),
        ({"steps": 13}, "steps: is 13 now, and was 12"),
        ({"target": make_dim(seed=4)}, "fingerprint: is"),
        ({"how": "ccsa"}, "method: is 'ccsa' now, and was 'fine-tune'"),
    ]:
        with pytest.raises(od.UserError, match=message):
            adapt(run, **{"out": tmp_path / "b", "resume": True, **changes})
    with pytest.raises(od.UserError, match="out: holds an adapted run, which another command resumes"):
        od.fit(od.ERM(), make_tiny(), network=TinyNet(), steps=2, out=tmp_path / "b", resume=True, progress=False)


@pytest.mark.parametrize("name", adaptation_names())
def test_one_of_a_run_with_settings_of_its_own_is_resumed(tmp_path, name):
    parent = od.fit(od.GUD(), make_tiny(), network=TinyNet(), embedding="pool", steps=2, progress=False)
    adapt(parent, name, out=tmp_path / "b")
    (tmp_path / "b" / "model.safetensors").unlink()
    adapt(parent, name, out=tmp_path / "b", resume=True)
    assert (tmp_path / "b" / "model.safetensors").exists()


@pytest.mark.parametrize("name", adaptation_names())
def test_of_a_random_dataset_with_varied_images(run, dim, tmp_path, monkeypatch, name):
    """What the images range over is found out anew after a kill: a step must not depend on when that is."""

    class Noisy:
        def __len__(self):
            return len(dim)

        def __getitem__(self, place):
            return dim.batch([place]).images[0] + 0.2 * torch.rand(1, 8, 8), int(dim.labels[place])

    monkeypatch.setitem(QUICK, name, {**QUICK[name], **VARIED, "checkpoint_every": 3})
    kind = adaptation_class(name)
    adapt(run, name, target=Noisy(), out=tmp_path / "whole")
    with killed_after(7, kind, monkeypatch):
        adapt(run, name, target=Noisy(), out=tmp_path / "killed")
    adapt(run, name, target=Noisy(), out=tmp_path / "killed", resume=True)
    weights = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in ("whole", "killed")]
    assert weights[0] == weights[1]
