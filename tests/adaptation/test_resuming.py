"""An adaptation that was stopped: gone on with, bit for bit, and only with the same one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
import yaml

import onedomain as od
from onedomain.adaptation import adaptation_class, adaptation_names
from onedomain.adaptation.fine_tune import FineTune
from onedomain.grouping import group_runs
from onedomain.records import read_run
from tests.adaptation.conftest import make_dim
from tests.adaptation.test_adapting import QUICK, adapt
from tests.conftest import TinyNet, make_tiny

VARIED = {"vary": 1.0, "invert": 0.25}


def without(folder, place, *names):
    """As if the run had been made before there were settings of these names."""
    path = folder / "run.yaml"
    written = yaml.safe_load(path.read_text())
    for name in names:
        del place(written)[name]
    path.write_text(yaml.safe_dump(written))


@contextmanager
def killed_after(steps, kind, monkeypatch):
    """Whatever is adapted by `kind` meanwhile is killed after so many steps."""
    step, done = kind.step, []

    def killed(self, batch):
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(1)
        return step(self, batch)

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
        ({"how": "ccsa"}, "method: is 'ccsa' now, and was 'erm'"),
    ]:
        with pytest.raises(od.UserError, match=message):
            adapt(run, **{"out": tmp_path / "b", "resume": True, **changes})
    with pytest.raises(od.UserError, match="out: holds an adapted run, which is gone on with otherwise"):
        od.fit(od.ERM(), make_tiny(), network=TinyNet(), steps=2, out=tmp_path / "b", resume=True, progress=False)


@pytest.mark.parametrize("name", adaptation_names())
def test_an_adaptation_from_before_a_setting_is_gone_on_with_as_it_was(run, tmp_path, monkeypatch, name):
    adapt(run, name, out=tmp_path / "b")
    without(tmp_path / "b", lambda written: written["adaptation"]["settings"], *VARIED)
    if adaptation_class(name).from_scratch:  # they are the run's own
        without(tmp_path / "b", lambda written: written["settings"], *VARIED)
    adapt(run, name, out=tmp_path / "b", resume=True)
    monkeypatch.setitem(QUICK, name, {**QUICK[name], **VARIED})
    with pytest.raises(od.UserError, match=r"vary: is 1.0 now, and was 0.0"):
        adapt(run, name, out=tmp_path / "b", resume=True)


@pytest.mark.parametrize("name", adaptation_names())
def test_one_of_a_run_with_settings_of_its_own_is_resumed(tmp_path, name):
    parent = od.fit(od.GUD(), make_tiny(), network=TinyNet(), embedding="pool", steps=2, progress=False)
    adapt(parent, name, out=tmp_path / "b")
    (tmp_path / "b" / "model.safetensors").unlink()
    adapt(parent, name, out=tmp_path / "b", resume=True)
    assert (tmp_path / "b" / "model.safetensors").exists()


class Own(FineTune):
    """A user's, with settings that it inherits."""


def test_one_of_ones_own_from_before_a_setting_is_gone_on_with(run, tmp_path):
    options = {"method": Own(steps=3), "source": make_tiny(), "out": tmp_path / "b", "progress": False}
    run.adapt(make_dim(), 4, **options)
    without(tmp_path / "b", lambda written: written["adaptation"]["settings"], *VARIED)
    run.adapt(make_dim(), 4, **options, resume=True)


@pytest.mark.parametrize("name", adaptation_names())
def test_one_of_a_run_from_before_a_setting_is_resumed(tmp_path, name):
    od.fit(od.ERM(), make_tiny(), network=TinyNet(), embedding="pool", steps=2, progress=False, out=tmp_path / "a")
    without(tmp_path / "a", lambda written: written["settings"], "flips_and_crops")
    parent = od.load(tmp_path / "a", network=TinyNet())
    adapt(parent, name, out=tmp_path / "b")
    adapt(parent, name, out=tmp_path / "b", resume=True)


@pytest.mark.parametrize("name", ["fada", "ccsa"])
def test_draws_from_before_a_setting_are_of_one_group_with_later_ones(run, tmp_path, name):
    adapt(run, name, out=tmp_path / "b", seeds=2)
    for place in (lambda written: written["adaptation"]["settings"], lambda written: written["settings"]):
        without(tmp_path / "b" / "draw-0", place, *VARIED)
    [group] = group_runs([read_run(tmp_path / "b" / f"draw-{draw}") for draw in (0, 1)])
    assert len(group.runs) == 2


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
