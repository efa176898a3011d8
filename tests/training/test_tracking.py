from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import onedomain as od
from onedomain.cli import app
from onedomain.methods.sdg import SDG
from onedomain.runs.samples import mosaic, read_samples
from tests.conftest import TinyNet

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

QUICK = {
    "steps": 12, "batch_size": 6, "log_every": 2, "checkpoint_every": 4, "warm_up": 3, "domain_every": 4, "domains": 2,
    "domain_size": 20, "ascent_steps": 2, "beta": 0.0,
}  # fmt: skip


class Killed(BaseException):
    pass


def fit(tiny, folder, track="tensorboard", kind=SDG, **settings):
    torch.manual_seed(0)
    return od.fit(kind(**{**QUICK, **settings}), tiny, network=TinyNet(), embedding="pool", out=folder, resume=True,
                  progress=False, track=track)  # fmt: skip


def killed_at(moment):
    class Stopping(SDG):
        name = "sdg"

        def step(self, batch, step):
            self.count = getattr(self, "count", 0) + 1
            if self.count > moment:
                raise Killed
            return super().step(batch, step)

    return Stopping


def events(folder):
    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "images": 0})
    return found.Reload()


def scalars(folder, tag="train/loss"):
    return [(event.step, event.value) for event in events(folder).Scalars(tag)]


def journal(run, name="loss"):
    return [(row["step"], pytest.approx(row[name])) for row in run.history if name in row]


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_the_board_shows_what_the_journal_says_and_the_images_made(tiny, tmp_path):
    run = fit(tiny, tmp_path / "a")
    assert scalars(tmp_path / "a") == journal(run)
    tags = events(tmp_path / "a").Tags()
    assert {"train/source", "train/augmented", "w_c/augmented-1", "w_d/augmented-2"} <= set(tags["scalars"])
    assert tags["images"] == ["augmented/augmented-1", "augmented/augmented-2"]
    (image,) = events(tmp_path / "a").Images("augmented/augmented-2")
    assert image.step == 7
    pixels = mosaic(read_samples(tmp_path / "a")[1])
    assert (image.height, image.width) == pixels.shape[:2]


def test_tracking_changes_no_bit(tiny, tmp_path):
    fit(tiny, tmp_path / "tracked")
    fit(tiny, tmp_path / "alone", track=None)
    assert weights(tmp_path / "tracked") == weights(tmp_path / "alone")
    assert not (tmp_path / "alone" / "tensorboard").exists()


@pytest.mark.parametrize("moment", [1, 6, 9])
def test_a_killed_run_goes_on_without_gaps_or_doubles(tiny, tmp_path, moment):
    whole = fit(tiny, tmp_path / "whole")
    with pytest.raises(Killed):
        fit(tiny, tmp_path / "killed", kind=killed_at(moment))
    fit(tiny, tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert scalars(tmp_path / "killed") == journal(whole)
    assert [step for step, _ in scalars(tmp_path / "killed", "w_c/augmented-1")] == [3]
    assert events(tmp_path / "killed").Tags()["images"] == ["augmented/augmented-1", "augmented/augmented-2"]


def test_tracked_from_the_middle_on_it_has_the_beginning_too(tiny, tmp_path):
    with pytest.raises(Killed):
        fit(tiny, tmp_path / "a", track=None, kind=killed_at(9))
    run = fit(tiny, tmp_path / "a")
    assert scalars(tmp_path / "a") == journal(run)
    assert events(tmp_path / "a").Tags()["images"] == ["augmented/augmented-1", "augmented/augmented-2"]


def test_gud_shows_its_rounds_when_they_are_made(tiny, tmp_path):
    torch.manual_seed(0)
    method = od.GUD(steps=5, batch_size=6, rounds=1, round_every=2, round_size=20, ascent_steps=1)
    od.fit(method, tiny, network=TinyNet(), embedding="pool", out=tmp_path / "a", progress=False, track="tensorboard")
    (image,) = events(tmp_path / "a").Images("augmented/augmented-1")
    assert image.step == 2


def test_what_cannot_be_tracked_is_refused_before_anything_is_written(tiny, tmp_path, monkeypatch):
    with pytest.raises(od.UserError, match="track: 'wandb' is not known; allowed: tensorboard"):
        fit(tiny, tmp_path / "a", track="wandb")
    with pytest.raises(od.UserError, match="track: given for a run without a folder; allowed: with out="):
        od.fit("erm", tiny, network=TinyNet(), steps=1, progress=False, track="tensorboard")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tensorboard" else found(name))
    with pytest.raises(od.UserError, match="track: tensorboard is not installed; allowed: pip install tensorboard"):
        fit(tiny, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_values_are_plain_numbers(tiny, tmp_path):
    fit(tiny, tmp_path / "a", domains=1)
    assert np.isfinite([value for _, value in scalars(tmp_path / "a", "train/seconds")]).all()


def test_the_command_refuses_before_it_reads_data(tmp_path):
    result = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "a"), "--track", "wandb"])
    assert isinstance(result.exception, od.UserError)
    assert "track: 'wandb' is not known" in str(result.exception)
    assert not (tmp_path / "a").exists()
