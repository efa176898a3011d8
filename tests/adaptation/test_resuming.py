"""An adaptation that was stopped: gone on with, bit for bit, and only with the same one."""

from __future__ import annotations

import pytest
import yaml

import onedomain as od
from onedomain.adaptation import adaptation_class, adaptation_names
from tests.adaptation.conftest import make_dim
from tests.adaptation.test_adapting import QUICK, adapt
from tests.conftest import TinyNet, make_tiny

VARIED = {"vary": 1.0, "invert": 0.25}


@pytest.mark.parametrize("settings", [{}, VARIED])
@pytest.mark.parametrize("name", adaptation_names())
@pytest.mark.parametrize("moment", [2, 5, 10])
def test_killed_and_resumed_it_ends_with_the_same_bits(run, tmp_path, monkeypatch, name, settings, moment):
    kind = adaptation_class(name)
    monkeypatch.setitem(QUICK, name, {**QUICK[name], **settings, "checkpoint_every": 3})
    adapt(run, name, out=tmp_path / "whole", test=make_dim(30, seed=5))
    step, done = kind.step, []

    def killed(self, batch):
        if len(done) == moment:
            raise KeyboardInterrupt
        done.append(1)
        return step(self, batch)

    monkeypatch.setattr(kind, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        adapt(run, name, out=tmp_path / "killed", test=make_dim(30, seed=5))
    monkeypatch.setattr(kind, "step", step)
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
    path = tmp_path / "b" / "run.yaml"
    written = yaml.safe_load(path.read_text())
    for newer in VARIED:
        del written["adaptation"]["settings"][newer]
        written["settings"].pop(newer, None)  # from scratch they are the run's own
    path.write_text(yaml.safe_dump(written))
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
