from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import onedomain as od
from onedomain.methods.adapt import adaptation_class, adaptation_names
from onedomain.methods.adapt.fine_tune import FineTune
from onedomain.runs.manifest import read_manifest
from onedomain.runs.records import read_run
from onedomain.training.adapt import weights_fingerprint
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny

QUICK = {
    **{name: {"steps": 12} for name in adaptation_names()},  # also of one that is new
    "fine-tune": {"learning_rate": 1e-2, "steps": 12},
    "ccsa": {"batch_size": 12, "steps": 12},
    "fada": {"batch_size": 12, "steps": 12, "pretrain_steps": 4, "discriminator_steps": 4},
}


def quick(name, **settings):
    return adaptation_class(name)(**{**QUICK[name], **settings})


def adapt(run, how="fine-tune", target=None, shots=4, **options):
    given = {"source": make_tiny(), "held_out": make_tiny(30, seed=9), "progress": False, **options}
    return run.adapt(target or make_dim(), shots, method=quick(how), **given)


def test_it_learns_the_target_and_says_what_it_forgot(run, dim):
    method = FineTune(learning_rate=1e-2, steps=120)
    test, held_out = make_dim(90, seed=5), make_tiny(30, seed=9)
    adapted = run.adapt(dim, 7, method=method, test=test, source=make_tiny(), held_out=held_out, progress=False)
    assert adapted.domains == ("dim", "tiny")
    assert (adapted.target, adapted.source) == ("dim", "tiny")
    gained, forgotten = adapted.change("dim"), adapted.change("tiny")
    assert gained.mean_before < 0.5
    assert gained.mean_after > 0.8
    assert forgotten.mean_before > 0.9
    # The scores are those that anyone gets who scores the two runs.
    assert gained.before == (run.evaluate({"x": test})["x"].accuracy,)
    assert forgotten.after == (adapted.run.evaluate({"x": held_out})["x"].accuracy,)
    assert forgotten.gain == forgotten.mean_after - forgotten.mean_before
    assert gained.deviation is None


def test_the_parent_stays_as_it_was(run, tmp_path):
    before = weights_fingerprint(run.network.module)
    adapted = adapt(run)
    assert weights_fingerprint(run.network.module) == before == adapted.run.manifest.adaptation.parent_weights
    assert weights_fingerprint(adapted.run.network.module) != before
    assert run.manifest.adaptation is None
    assert not od.load(adapted.run.save(tmp_path / "b"), network=TinyNet()).manifest.adaptation.from_scratch


@pytest.mark.parametrize("name", adaptation_names())
def test_an_adapted_run_is_saved_and_comes_back_with_its_parent(run, dim, tmp_path, name):
    adapted = adapt(run, name, out=tmp_path / "b", test=make_dim(30, seed=5), name="site")
    again = od.load(tmp_path / "b", network=TinyNet())
    images = make_dim(12, seed=6).images
    assert np.array_equal(again.predict(images).probabilities, adapted.run.predict(images).probabilities)
    assert again.predict(images).out_of_domain is not None
    info = again.manifest.adaptation
    assert (info.method, info.target, info.shots, info.draw) == (name, "site", 4, 0)
    assert info.parent_weights == weights_fingerprint(run.network.module)
    assert len(set(info.images)) == 12
    assert set(info.images) <= set(dim.image_fingerprints())
    assert again.manifest.method == (name if adaptation_class(name).from_scratch else "erm")
    assert again.manifest.source == run.manifest.source


def test_records_carry_the_adaptation_and_the_parents_stand_beside_them(run, tmp_path):
    adapted = adapt(run, out=tmp_path / "b", test=make_dim(30, seed=5))
    records = read_run(tmp_path / "b")
    after = records.scores("own")["dim"]["accuracy"]
    assert after["value"] == adapted.change("dim").mean_after
    assert after["unseen"] is False
    told = after["adaptation"]
    assert (told["method"], told["shots"], told["draw"], told["settings"]["steps"]) == ("fine-tune", 4, 0, 12)
    assert "images" not in told
    assert records.outcomes("own")["dim"].right.mean() == pytest.approx(after["value"])
    before = records.scores_before("own")
    assert set(before) == {"dim", "tiny"}
    assert before["dim"]["accuracy"]["value"] == adapted.change("dim").mean_before
    assert before["dim"]["accuracy"]["data"] == after["data"]
    assert before["dim"]["accuracy"]["unseen"] is True
    assert "adaptation" not in before["dim"]["accuracy"]
    adapted.run.write_records(adapted.run.evaluate({"dim": make_dim(30, seed=5)}))  # scored again
    assert read_run(tmp_path / "b").scores_before("own") == before


def test_draws_are_adapted_by_themselves_and_told_with_their_deviation(run, tmp_path):
    adapted = adapt(run, seeds=3, seed=1, out=tmp_path / "b", test=make_dim(90, seed=5))
    assert sorted(entry.name for entry in (tmp_path / "b").iterdir()) == ["draw-1", "draw-2", "draw-3"]
    drawn = [set(draw.run.manifest.adaptation.images) for draw in adapted.draws]
    assert drawn[0] != drawn[1]
    change = adapted.change("dim")
    assert len(set(change.before)) == 1
    assert change.deviation == pytest.approx(np.std(change.after, ddof=1))
    alone = adapt(run, seed=2, test=make_dim(90, seed=5))
    assert alone.change("dim").after[0] == change.after[1]
    assert weights_fingerprint(alone.run.network.module) == weights_fingerprint(adapted.draws[1].run.network.module)
    rows = adapted.summary()
    assert json.loads(json.dumps(rows)) == rows
    assert rows["domains"]["dim"]["deviation"] == change.deviation
    assert [row["seed"] for row in rows["draws"]] == [1, 2, 3]


def test_what_was_drawn_is_never_scored(run, dim):
    with pytest.raises(od.UserError, match="test: 12 of the images drawn from dim are among those to score"):
        adapt(run, test=dim)
    adapted = adapt(run)
    scores = adapted.draws[0].after["dim"]
    assert (scores.split, scores.count) == ("not drawn", 48)
    assert "what a draw left over was scored" in adapted.notes[0]
    # Nor later, when someone scores the folder that was drawn from.
    again = adapted.run.evaluate({"dim": dim})["dim"]
    assert (again.count, again.note) == (48, "12 adapted to, left out")
    assert again.accuracy == scores.accuracy
    drawn = dim.subset([place for place, image in enumerate(dim.image_fingerprints()) if image in _drawn(adapted)])
    with pytest.raises(od.UserError, match="dim: holds only images that this run was adapted to"):
        adapted.run.evaluate({"dim": drawn})


def _drawn(adapted):
    return adapted.run.manifest.adaptation.images


def test_an_adapted_run_is_adapted_again_and_remembers_both(run, dim, tmp_path):
    first = adapt(run, out=tmp_path / "b").run
    other = replace(make_dim(seed=4), name="other")
    again = adapt(first, target=other, out=tmp_path / "c").run
    loaded = od.load(tmp_path / "c", network=TinyNet())
    assert [info.target for info in loaded.manifest.adaptations] == ["other", "dim"]
    assert loaded.manifest.adaptation.parent == str(tmp_path / "b")
    assert again.evaluate({"dim": dim})["dim"].count == 48
    scratch = adapt(again, "ccsa", target=dim, out=tmp_path / "d").run
    assert [info.method for info in scratch.manifest.adaptations] == ["ccsa"]
    tuned = adapt(scratch, target=other, out=tmp_path / "e").run
    assert tuned.manifest.method == "ccsa"
    assert type(od.load(tmp_path / "e", network=TinyNet()).method) is adaptation_class("ccsa")


def test_classes_that_the_target_lacks_are_told_and_new_ones_refused(run, dim):
    adapted = adapt(run, target=dim.subset(np.flatnonzero(dim.labels != 2)))
    assert adapted.run.manifest.adaptation.missing_classes == ("right",)
    assert any("no drawn image of class right" in note and "less often" in note for note in adapted.notes)
    assert adapted.run.predict(dim.images).probabilities.shape == (60, 3)
    adapt(run, "fada", target=dim.subset(np.flatnonzero(dim.labels != 2)))
    with pytest.raises(od.UserError, match="a label is 3; allowed: 0 to 2"):
        adapt(run, target=(dim.images, np.where(dim.labels == 2, 3, dim.labels)))
    with pytest.raises(od.UserError, match="dim: has the 4 classes left, middle, right, up"):
        adapt(run, target=replace(dim, classes=(*dim.classes, "up")))


def test_mistakes_are_one_line_and_write_nothing(run, dim, tmp_path):
    out = tmp_path / "b"
    for options, message in [
        ({"shots": 21}, "shots: got 21, and dim"),
        ({"seeds": 0}, "seeds: got 0"),
        ({"seed": -1}, "seed: got -1"),
        ({"source": None, "how": "fada"}, "source: not given, and fada trains on source and target"),
        ({"source": make_tiny(seed=3)}, "source: other images than the 60 that the run was trained on"),
        ({"target": replace(dim, name="tiny")}, "target: 'tiny' is the name of what the run was trained on"),
        ({"target": replace(dim, images=dim.images.repeat(2, 1))}, "dim: images are 16×8×1; allowed: 8×8×1"),
        ({"seeds": "2"}, "seeds: got '2'; allowed: a whole number of draws from 1 to 1000"),
        ({"test": (np.zeros((3, 9, 9, 1), np.uint8), np.arange(3))}, "images are 9×9×1"),
    ]:
        with pytest.raises(od.UserError, match=message):
            adapt(run, **{"out": out, **options})
        assert not out.exists()
    with pytest.raises(od.UserError, match="method: 'fine' is not known, did you mean 'fine-tune'"):
        run.adapt(dim, 4, method="fine")
    with pytest.raises(od.UserError, match="method: got a ERM"):
        run.adapt(dim, 4, method=od.ERM())


def test_all_draws_are_checked_before_the_first_is_trained(run, tmp_path):
    (tmp_path / "b" / "draw-1").mkdir(parents=True)
    (tmp_path / "b" / "draw-1" / "mine").write_text("mine")
    with pytest.raises(od.UserError, match="draw-1 exists and is not empty"):
        adapt(run, seeds=2, out=tmp_path / "b")
    assert not (tmp_path / "b" / "draw-0").exists()


def test_without_the_source_forgetting_is_not_measured_and_nothing_is_called_out_of_domain(run, dim):
    adapted = adapt(run, source=None, held_out=None)
    assert adapted.source is None
    assert adapted.domains == ("dim",)
    assert adapted.run.predict(dim.images).out_of_domain is None
    assert any("what was forgotten was not measured" in note for note in adapted.notes)
    assert any("out_of_domain of the adapted model is unknown" in note for note in adapted.notes)
    everything = dim.subset(np.flatnonzero(np.arange(60) < 12))
    nothing_left = adapt(run, target=everything, source=None, held_out=None)
    assert nothing_left.domains == ()
    assert any("was not scored: all its images were drawn" in note for note in nothing_left.notes)


def test_the_part_of_the_source_that_fit_set_aside_is_found_again(dim):
    source = make_tiny(400)
    torch.manual_seed(0)
    run = od.fit(od.ERM(learning_rate=1e-2), source, network=TinyNet(), embedding="pool", steps=5, progress=False)
    adapted = adapt(run, source=source, held_out=None)
    scores = adapted.draws[0].after["tiny"]
    assert (scores.split, scores.count) == ("held out", 20)
    assert adapted.run.calibration.held_out


def test_an_adapted_uncertain_sdg_keeps_its_phi(dim, tmp_path):
    torch.manual_seed(0)
    method = od.UncertainSDG(steps=8, warm_up=2, batch_size=6, prediction_draws=2)
    options = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "progress": False}
    run = od.fit(method, make_tiny(), **options)
    adapted = adapt(run, out=tmp_path / "b").run
    for name, weight in run.method.auxiliary.state_dict().items():
        assert torch.equal(weight, adapted.method.auxiliary.state_dict()[name])
    again = od.load(tmp_path / "b", network=TinyNet())
    said = again.predict(dim.images[:6])
    assert np.array_equal(said.probabilities, adapted.predict(dim.images[:6]).probabilities)
    assert (said.mutual_information > 0).any()


def test_an_ensemble_is_not_fine_tuned_in_part(dim):
    torch.manual_seed(0)
    method = od.GUD(gammas="0.1,1", steps=3, rounds=1, round_every=9, batch_size=6)
    run = od.fit(method, make_tiny(), network=TinyNet(), embedding="pool", progress=False)
    with pytest.raises(od.UserError, match="method: the run is an ensemble of 2 networks"):
        adapt(run)


def test_a_segmentation_run_adapts_to_so_many_images_in_all(tmp_path):
    def scenes(name, seed, shift):
        images = np.random.default_rng(seed).integers(0, 150, (12, 6, 6, 3), dtype=np.uint8)
        labels = (images[..., 0] > 75).astype(np.int64)
        labels[:, 0] = 255
        return od.Domain(name, "train", images + np.uint8(shift), labels, ("dark", "bright"), void=255)

    torch.manual_seed(0)
    day, night = scenes("day", 0, 0), scenes("night", 1, 100)
    run = od.fit(od.ERM(learning_rate=0.1), day, network=nn.Conv2d(3, 2, 1), steps=100, progress=False)
    method = FineTune(learning_rate=0.1, steps=100)
    options = {"method": method, "source": day, "held_out": scenes("day", 2, 0), "progress": False}
    adapted = run.adapt(night, 5, out=tmp_path / "b", **options)
    assert len(adapted.run.manifest.adaptation.images) == 5
    assert adapted.draws[0].after["night"].count == 7
    assert adapted.summary()["metric"] == "miou"
    assert adapted.change("night").after[0] == adapted.draws[0].after["night"].miou
    assert adapted.change("night", "accuracy").gain > 0.2
    assert adapted.change("day", "accuracy").mean_before > 0.9
    assert od.load(tmp_path / "b", network=nn.Conv2d(3, 2, 1)).predict(night.images).labels.shape == (12, 6, 6)
    with pytest.raises(od.UserError, match="method: ccsa pairs images of one class, and this is segmentation"):
        run.adapt(night, 5, method="ccsa", source=day)
    with pytest.raises(od.UserError, match="target: labels images; allowed: labels of pixels"):
        run.adapt((night.images, np.zeros(12, np.int64)), 5)


def test_from_scratch_starts_every_layer_afresh_and_refuses_one_that_cannot(run, dim):
    class Scaled(TinyNet):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, images):
            return self.scale * super().forward(images)

    adapted = [adapt(run, "ccsa", seeds=1, seed=seed, steps=1).run for seed in (0, 0, 1)]
    heads = [each.network.module.head.weight for each in adapted]
    assert torch.equal(heads[0], heads[1])
    assert not torch.allclose(heads[0], heads[2], atol=0.05)
    own = od.fit(od.ERM(), make_tiny(), network=Scaled(), embedding="pool", steps=1, progress=False)
    with pytest.raises(od.UserError, match="network: layer 'Scaled' of your own network cannot be started afresh"):
        adapt(own, "ccsa")


def test_a_random_dataset_is_drawn_from_and_resumed_alike(run, dim, tmp_path):
    class Noisy:
        def __len__(self):
            return len(dim)

        def __getitem__(self, place):
            return dim.batch([place]).images[0] + 0.01 * torch.rand(1, 8, 8), int(dim.labels[place])

    options = {"target": Noisy(), "held_out": make_tiny(30, seed=9)}
    once = adapt(run, out=tmp_path / "b", **options)
    weights = (tmp_path / "b" / "model.safetensors").read_bytes()
    adapt(run, out=tmp_path / "b", resume=True, **options)
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == weights
    assert once.draws[0].after["target"].count == 48  # by place: no image looks twice the same


def test_the_manifest_on_disk_says_all_of_it(run, tmp_path):
    adapt(run, out=tmp_path / "b")
    manifest = read_manifest(tmp_path / "b")
    assert manifest.adaptation.settings["learning_rate"] == 1e-2
    assert manifest.adaptation.benchmark is None
    assert manifest.settings == run.manifest.settings


@pytest.mark.parametrize("name", adaptation_names())
def test_of_an_adapted_run_both_scores_are_of_the_same_images(run, tmp_path, name):
    once = adapt(run, out=tmp_path / "b", test=make_dim(30, seed=5)).run
    twice = adapt(once, name, out=tmp_path / "c", seed=1)
    [draw] = twice.draws
    assert draw.before["dim"].count == draw.after["dim"].count < 60
    assert draw.before["dim"].fingerprint == draw.after["dim"].fingerprint
    before = read_run(tmp_path / "c").scores_before("own")
    assert before["dim"]["accuracy"]["unseen"] is False  # some of it the parent has learned


def test_from_scratch_nothing_is_said_of_weights_that_the_parent_started_from(trained):
    named = trained.manifest.network.model_copy(update={"weights": "start.pth sha256:0"})
    run = copy.copy(trained)
    run.manifest = trained.manifest.model_copy(update={"network": named})
    assert adapt(run).run.manifest.network.weights == "start.pth sha256:0"
    assert adapt(run, "ccsa").run.manifest.network.weights is None
