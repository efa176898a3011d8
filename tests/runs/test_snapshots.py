from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.data.arrays import save_arrays
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.methods.uncertain_sdg import UncertainSDG
from onedomain.runs.samples import read_snapshots
from tests.conftest import TinyNet

QUICK = {"steps": 20, "batch_size": 12, "warm_up": 3, "learning_rate": 1e-2, "checkpoint_every": 5, "image": False}


class Unseen(UncertainSDG):
    """The same, with nobody looking."""

    snapshot_steps = ()


class Killed(BaseException):
    pass


def fit(tiny, folder, kind=UncertainSDG, **settings):
    torch.manual_seed(0)
    method = kind(**{**QUICK, **settings})
    return od.fit(method, tiny, network=TinyNet(), embedding="pool", perturb=["conv"], out=folder, resume=True,
                  progress=False)  # fmt: skip


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "snapshots").iterdir()}


def test_looking_changes_nothing(tiny, tmp_path):
    fit(tiny, tmp_path / "seen")
    fit(tiny, tmp_path / "unseen", Unseen)
    for name in ("model.safetensors", "auxiliary.safetensors"):
        assert (tmp_path / "seen" / name).read_bytes() == (tmp_path / "unseen" / name).read_bytes()
    assert not (tmp_path / "unseen" / "snapshots").exists()


@pytest.mark.parametrize("moment", [1, 3, 9, 15])
def test_killed_and_resumed_it_has_the_same_snapshots(tiny, tmp_path, moment, monkeypatch):
    fit(tiny, tmp_path / "whole")
    original = UncertainSDG.step

    def killed(self, batch, step):
        if step == moment:
            raise Killed
        return original(self, batch, step)

    monkeypatch.setattr(UncertainSDG, "step", killed)
    with pytest.raises(Killed):
        fit(tiny, tmp_path / "killed")
    monkeypatch.setattr(UncertainSDG, "step", original)
    fit(tiny, tmp_path / "killed")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert [snapshot.step for snapshot in read_snapshots(tmp_path / "whole")] == [3, 4, 6, 10, 15, 20]


def test_a_snapshot_shows_what_the_noise_does_to_the_sample(tiny, tmp_path):
    run = fit(tiny, tmp_path / "a")
    last = read_snapshots(tmp_path / "a")[-1].arrays
    assert last["perturbation"].shape == (60, 1)
    assert last["mixed_labels"].shape == (600, 3)
    assert last["perturbation_maps"].shape == (8, 6, 6)
    assert np.allclose(last["mixed_labels"].sum(1), 1, atol=1e-5)
    assert np.allclose(last["perturbation_maps"].mean((1, 2)), last["perturbation"][:8, 0], rtol=1e-2)
    chosen = np.random.default_rng(60).permutation(60)
    assert np.array_equal(last["labels"], tiny.labels[chosen])
    assert np.array_equal(last["images"], tiny.images[chosen[:8]])
    run.network.module.eval()
    with torch.no_grad():
        z = run.network.embed(tiny.batch(chosen).images)[1].flatten(1)
    assert np.allclose(last["embedding"], z, atol=1e-2)
    assert not np.allclose(last["embedding"], last["perturbed_embedding"], atol=1e-2)


def test_with_noise_of_the_image_the_maps_are_of_the_image(tiny, tmp_path):
    fit(tiny, tmp_path / "a", image=True)
    last = read_snapshots(tmp_path / "a")[-1].arrays
    assert last["perturbation"].shape == (60, 2)
    assert last["perturbation_maps"].shape == (8, 8, 8)
    assert np.allclose(last["perturbation_maps"].mean((1, 2)), last["perturbation"][:8, 0], rtol=1e-2)


def test_without_learned_uncertainty_the_noise_is_the_same_at_every_moment(tiny, tmp_path):
    fit(tiny, tmp_path / "a", uncertainty=False)
    first, *_, last = read_snapshots(tmp_path / "a")
    assert np.array_equal(first.arrays["perturbation"], last.arrays["perturbation"])
    expected = np.log1p(np.exp(np.random.default_rng(0).normal(size=10**6))).mean()  # E Softplus(N(0, 1))
    assert last.arrays["perturbation"].mean() == pytest.approx(expected, abs=0.02)


def test_labels_of_pixels_and_a_run_shorter_than_the_warm_up(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)
    labels = (images[..., 0] > 127).astype(np.int64)
    labels[:, 0] = 255
    domain = Domain("dense", "train", images, labels, ("dark", "bright"), void=255)
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    method = UncertainSDG(steps=2, batch_size=4, warm_up=100)
    od.fit(method, domain, network=network, embedding="1", perturb=["0"], out=tmp_path / "a", progress=False)
    (only,) = read_snapshots(tmp_path / "a")
    assert only.step == 2
    assert only.arrays["mixed_labels"].shape == (80, 2)


def test_most_methods_have_none(tiny, tmp_path):
    od.fit("erm", tiny, network=TinyNet(), steps=2, out=tmp_path / "a", progress=False)
    assert read_snapshots(tmp_path / "a") == []


def test_a_foreign_file_is_named(tmp_path):
    save_arrays(tmp_path / "snapshots" / "step-1.safetensors", {"when": 1}, {"x": np.zeros(1)})
    with pytest.raises(UserError, match="step-1.safetensors: is of step None"):
        read_snapshots(tmp_path)


Z = {"embedding": np.zeros((4, 2), np.float16), "perturbed_embedding": np.zeros((4, 2), np.float16)}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"perturbed_embedding": np.zeros((0, 2), np.float16)}, "is float16 of shape .0, 2."),
        ({name: array[:0] for name, array in Z.items()}, "is float16 of shape .0, 2."),
        ({"labels": np.zeros(4, np.int64), "mixed_labels": np.zeros((5, 3), np.float32)}, "do not go together"),
        ({"labels": np.full(4, 3), "mixed_labels": np.zeros((8, 3), np.float32)}, "labels has a number .* from 3 on"),
        ({"mixed_labels": np.zeros((0, 3), np.float32)}, "are empty"),
    ],
)
def test_arrays_that_no_figure_can_show_are_refused(arrays, said, tmp_path):
    save_arrays(tmp_path / "snapshots" / "step-1.safetensors", {"step": 1}, Z)
    save_arrays(tmp_path / "snapshots" / "step-2.safetensors", {"step": 2}, {**Z, **arrays})
    with pytest.raises(UserError, match=f"step-2.safetensors: .*{said}"):
        read_snapshots(tmp_path)
