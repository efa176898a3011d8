from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import nn

import onedomain as od
from tests.conftest import TinyNet, make_tiny


@pytest.fixture
def run(tiny):
    torch.manual_seed(0)
    method = od.ERM(learning_rate=1e-2, batch_size=20)
    return od.fit(method, tiny, network=TinyNet(), embedding="pool", steps=60, progress=False)


def test_it_learns_and_scores_named_domains(run, tiny):
    dark = (tiny.images // 2, tiny.labels)
    evaluation = run.evaluate({"same": tiny, "dark": dark}, seen=["same"])
    assert evaluation["same"].accuracy > 0.95
    assert evaluation.unseen == ("dark",)
    assert evaluation["dark"].domain == "dark"


def test_predictions_are_the_softmax_of_the_network(run, tiny):
    predictions = run.predict(tiny.images)
    run.network.module.eval()
    with torch.no_grad():
        expected = run.network(tiny.batch(range(60)).images).softmax(1)
    assert np.allclose(predictions.probabilities, expected, atol=1e-6)
    assert np.array_equal(predictions.labels, expected.argmax(1))
    assert predictions.names[0] in tiny.classes
    entropy = -(expected * expected.log()).sum(1)
    assert np.allclose(predictions.uncertainty, entropy, atol=1e-5)


def test_a_prediction_does_not_depend_on_its_neighbours(run, tiny):
    alone, together = run.predict(tiny.images[:1]), run.predict(tiny.images, batch_size=7)
    assert np.allclose(alone.probabilities[0], together.probabilities[0], atol=1e-6)


def test_save_and_load_give_the_same_model(run, tiny, tmp_path):
    run.save(tmp_path / "a")
    assert set(load_file(tmp_path / "a" / "model.safetensors")) == set(TinyNet().state_dict())
    loaded = od.load(tmp_path / "a", network=TinyNet())
    assert np.array_equal(loaded.predict(tiny.images).probabilities, run.predict(tiny.images).probabilities)
    assert loaded.manifest == run.manifest
    assert loaded.history == run.history
    with pytest.raises(od.UserError, match="exists and is not empty"):
        run.save(tmp_path / "a")


def test_a_network_of_ones_own_must_be_given_again(run, tmp_path):
    run.save(tmp_path / "a")
    with pytest.raises(od.UserError, match=r"was trained with your own tests.conftest.TinyNet; allowed: od.load"):
        od.load(tmp_path / "a")
    with pytest.raises(od.UserError, match="does not fit the network"):
        od.load(tmp_path / "a", network=TinyNet(classes=4))


def test_the_librarys_network_is_built_again(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16), dtype=np.uint8)
    run = od.fit("erm", (images, np.arange(12) % 2), steps=2, out=tmp_path / "a", progress=False)
    assert np.array_equal(od.load(tmp_path / "a").predict(images).probabilities, run.predict(images).probabilities)


def test_the_run_folder_says_all(tmp_path, tiny):
    od.fit(od.ERM(batch_size=6), tiny, network=TinyNet(), steps=3, seed=4, out=tmp_path / "a", progress=False)
    manifest = yaml.safe_load((tmp_path / "a" / "run.yaml").read_text())
    assert manifest["method"] == "erm"
    assert manifest["settings"]["batch_size"] == 6
    assert manifest["seed"] == 4
    assert manifest["source"]["fingerprint"] == tiny.fingerprint
    assert manifest["environment"]["torch"] == torch.__version__
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {"run.yaml", "metrics.jsonl", "checkpoint.pt", "model.safetensors", "calibration.safetensors"}


def test_records_carry_what_a_table_must_say(run, tiny, tmp_path):
    run.save(tmp_path / "a")
    run.write_records(run.evaluate({"x": tiny, "y": tiny}))
    run.write_records(run.evaluate({"y": tiny}))
    rows = [json.loads(line) for line in (tmp_path / "a" / "results.jsonl").read_text().splitlines()]
    metrics = ("accuracy", "nll", "ece", "brier", "entropy", "error_auroc", "aurc", "domain_score", "flagged")
    defined = [metric for metric in metrics if getattr(run.evaluate({"x": tiny})["x"], metric) is not None]
    assert {"accuracy", "brier", "aurc", "flagged"} <= set(defined)
    assert [(row["domain"], row["metric"]) for row in rows] == [(d, m) for d in "xy" for m in defined]
    for key in ("method", "seed", "steps", "settings", "source", "data", "date", "count", "onedomain", "parameters"):
        assert all(key in row for row in rows)
    assert rows[0]["low"] < rows[0]["value"] <= rows[0]["high"]


def fit_again(tiny, folder, **changes):
    given = {"source": tiny, "network": TinyNet(), "steps": 4, "out": folder, "resume": True, "progress": False}
    return od.fit(changes.pop("method", "erm"), **{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 5}, "steps: is 5 now, and was 4"),
        ({"seed": 1}, "seed: is 1 now, and was 0"),
        ({"method": od.ERM(batch_size=3)}, "batch_size: is 3 now, and was 32"),
        ({"source": make_tiny(seed=1)}, "source: is"),
        ({"network": nn.Sequential(nn.Flatten(), nn.Linear(64, 3))}, "own: is"),
    ],
)
def test_a_changed_run_cannot_be_resumed(tiny, tmp_path, changes, message):
    fit_again(tiny, tmp_path / "a")
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    with pytest.raises(od.UserError, match=message):
        fit_again(tiny, tmp_path / "a", **changes)
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


def test_a_finished_run_resumed_is_left_as_it_is(tiny, tmp_path):
    first = fit_again(tiny, tmp_path / "a")
    again = fit_again(tiny, tmp_path / "a")
    assert np.array_equal(first.predict(tiny.images).probabilities, again.predict(tiny.images).probabilities)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "emr"}, "method: 'emr' is not known, did you mean 'erm'"),
        ({"method": 3}, "method: got a int"),
        ({"steps": 0}, "steps: got 0"),
        ({"seed": -1}, "seed: got -1"),
        ({"seed": "0"}, "seed: got '0'"),
        ({"out": 5}, "out: got 5; allowed: a path"),
        ({"weights": 5}, "weights: got 5; allowed: a path"),
        ({"perturb": 5}, "perturb: got 5; allowed: names of layers"),
        ({"benchmark": 5}, "benchmark: got 5"),
        ({"track": 5}, "track: '5' is not known"),
        ({"source": (np.zeros((2, 8, 8), np.uint8), [0, 2_000_000_000])}, "source: a label is 2000000000"),
        ({"device": "tpu"}, "device: 'tpu' is not there"),
        ({"device": "meta"}, "device: 'meta' is not there"),
        ({"source": (np.zeros((4, 8, 8), np.uint8), [0, 0, 0, 0])}, "source: has the one class 0"),
        ({"embedding": "poll"}, "embedding: 'poll' is not known, did you mean 'pool'"),
        ({"network": TinyNet(classes=9)}, "network: gives an output of shape"),
        ({"source": (np.zeros((4, 8, 8), np.uint8), [0, 0, 2, 2])}, "no image of class 1"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(tiny, tmp_path, arguments, message):
    given = {"source": tiny, "network": TinyNet(), "steps": 2, "out": tmp_path / "a", "progress": False}
    with pytest.raises(od.UserError, match=message):
        od.fit(arguments.pop("method", "erm"), **{**given, **arguments})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run, tiny: od.load(None), "folder: got None; allowed: a path"),
        (lambda run, tiny: od.load(""), "folder: got ''; allowed: a path"),
        (lambda run, tiny: od.image_folder(".", classes=5), "classes: got 5; allowed: a list of names"),
        (lambda run, tiny: od.frame_folder(".", classes="ab", size=(8, 8)), "classes: got 'ab'; allowed: a list"),
        (lambda run, tiny: od.fit("erm", tiny, benchmark="digit"), "benchmark: 'digit' is not known, did you mean"),
        (lambda run, tiny: run.save(5), "folder: got 5; allowed: a path"),
        (lambda run, tiny: run.evaluate({"same": tiny}, seen=["smae"]), "seen: 'smae' is not known, did you mean"),
        (lambda run, tiny: run.evaluate({"same": tiny}, seen="same"), "seen: got 'same'; allowed: a list"),
        (lambda run, tiny: run.evaluate({5: (tiny.images, tiny.labels)}), "has the name 5; allowed: names that are"),
        (lambda run, tiny: run.evaluate({"same": tiny}, batch_size=-1), "batch_size: got -1; allowed: a whole number"),
        (lambda run, tiny: run.predict(tiny.images, batch_size=0.5), "batch_size: got 0.5; allowed: a whole number"),
    ],
)
def test_what_a_run_cannot_take_is_one_line(run, tiny, call, message):
    with pytest.raises(od.UserError, match=message):
        call(run, tiny)


def test_a_used_folder_is_refused(tiny, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(od.UserError, match="out: .* exists and is not empty; allowed: a new or empty folder$"):
        fit_again(tiny, tmp_path, resume=False)
    with pytest.raises(od.UserError, match="notes.txt is a file"):
        fit_again(tiny, tmp_path / "notes.txt", resume=False)


def test_what_does_not_suit_the_model_is_refused(run, tiny):
    with pytest.raises(od.UserError, match="images: images are 9×8×1; allowed: 8×8×1"):
        run.predict(np.zeros((1, 9, 8), np.uint8))
    with pytest.raises(od.UserError, match="big: images are 16×16×1"):
        run.evaluate({"big": (np.zeros((2, 16, 16), np.uint8), [0, 1])})
    with pytest.raises(od.UserError, match=r"domain 'x' \(test\): a label is 7"):
        run.evaluate({"x": (tiny.images, tiny.labels + 5)})
    with pytest.raises(od.UserError, match="domains: none given"):
        run.evaluate({})
    with pytest.raises(od.UserError, match="x: has the 2 classes up, down"):
        run.evaluate({"x": od.Domain("x", "test", tiny.images[:2], np.array([0, 1]), ("up", "down"))})


def test_an_unfinished_or_foreign_folder_is_not_loaded(tiny, tmp_path):
    with pytest.raises(od.UserError, match="is not a run folder"):
        od.load(tmp_path)
    run = fit_again(tiny, tmp_path / "a")
    (run.folder / "model.safetensors").unlink()
    with pytest.raises(od.UserError, match="this run has not finished"):
        od.load(tmp_path / "a")
    (run.folder / "run.yaml").write_text("{method: erm, surprise: 1}")
    with pytest.raises(od.UserError, match="run.yaml: settings is not there"):
        od.load(tmp_path / "a")


def test_a_method_object_can_be_used_for_many_runs(tiny):
    method = od.ERM(batch_size=6)
    runs = [od.fit(method, tiny, network=TinyNet(), steps=2, seed=seed, progress=False) for seed in (0, 1)]
    assert runs[0].network.module is not runs[1].network.module
    assert runs[0].method is not runs[1].method
    assert method.settings.steps == 10_000


class HalfRate(od.ERM):
    """A method of a user's own, outside the library."""


def test_a_method_of_ones_own_is_given_again_to_load(tiny, tmp_path):
    od.fit(HalfRate(batch_size=6), tiny, network=TinyNet(), steps=2, out=tmp_path / "a", progress=False)
    with pytest.raises(od.UserError, match="method: 'HalfRate' is not known"):
        od.load(tmp_path / "a", network=TinyNet())
    assert od.load(tmp_path / "a", network=TinyNet(), method=HalfRate).method.settings.batch_size == 6


def test_layers_of_more_than_two_dimensions_are_left_as_they_are(tiny):
    class Volume(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv3d(1, 2, (1, 3, 3))
            self.head = nn.Linear(72, 3)

        def forward(self, images):
            return self.head(self.conv(images[:, :, None]).flatten(1))

    assert od.fit("erm", tiny, network=Volume(), steps=2, progress=False).seconds > 0


def test_bytes_are_refused_by_a_model_of_normalised_images(tiny):
    normalised = (tiny.images.astype(np.float32) / 40 - 2, tiny.labels)
    run = od.fit("erm", normalised, network=TinyNet(), steps=2, progress=False)
    assert len(run.predict(normalised[0]).labels) == 60
    with pytest.raises(
        od.UserError, match="images are bytes, or floats from 0 to 1; allowed: values as in training, from -2"
    ):
        run.predict(tiny.images)


@pytest.mark.parametrize(
    ("part", "broken", "told"),
    [
        ("network", {"name": "lenet"}, "network.embedding is not there"),
        ("source", {"classes": "ten"}, "source.name is not there"),
        ("environment", [1], r"environment got \[1\]; allowed: an object"),
    ],
)
def test_a_damaged_manifest_is_one_line(tiny, tmp_path, part, broken, told):
    folder = fit_again(tiny, tmp_path / "a").folder
    manifest = yaml.safe_load((folder / "run.yaml").read_text())
    (folder / "run.yaml").write_text(yaml.safe_dump({**manifest, part: broken}))
    with pytest.raises(od.UserError, match=f"run.yaml: {told}"):
        od.load(folder, network=TinyNet())


def test_dense_labels_train_with_a_dense_network():
    images = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)
    labels = (images[..., 0] > 127).astype(np.int64)
    labels[:, 0] = 255
    domain = od.Domain("dense", "train", images, labels, ("dark", "bright"), void=255)
    torch.manual_seed(0)
    run = od.fit(od.ERM(learning_rate=0.1), domain, network=nn.Conv2d(3, 2, 1), steps=150, progress=False)
    assert run.evaluate({"same": domain})["same"].accuracy > 0.95
    assert run.predict(images).labels.shape == (8, 6, 6)


def test_labels_of_pixels_have_a_network_by_default():
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
    domain = od.Domain("dense", "train", images, (images[..., 0] > 127).astype(np.uint8), ("dark", "bright"))
    run = od.fit("erm", domain, steps=1, progress=False)
    assert run.manifest.network.name == "fcn-small"


def test_the_package_offers_every_method_under_its_own_name():
    assert od.ERM.__name__ == "ERM"
    with pytest.raises(AttributeError):
        _ = od.NoSuchMethod
    for name in dir(od):
        assert getattr(od, name) is not None
