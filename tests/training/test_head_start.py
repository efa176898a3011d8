from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from torch import nn

import onedomain as od
from onedomain.errors import UserError
from onedomain.networks import own_network
from onedomain.networks.named import in_mode
from onedomain.training.head_start import STRENGTHS, _fitted, last_layer, start_head


class Small(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.ReLU())
        self.head = nn.Linear(8, classes)

    def forward(self, images):
        return self.head(self.features(images))


def images(count: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes differ in brightness."""
    labels = np.arange(count) % classes
    noise = np.random.default_rng(seed).integers(0, 20, (count, 4, 4, 3))
    return (noise + 40 * labels[:, None, None, None]).astype(np.uint8), labels


@pytest.mark.parametrize("classes", [2, 4])
def test_the_head_knows_the_frozen_features(classes):
    torch.manual_seed(0)
    network = own_network(Small(classes), embedding="features")
    before = network.module.features[1].weight.clone()
    source = _domain(images(80, classes))
    accuracy = start_head(network, source, torch.device("cpu"), shown=False)
    assert accuracy > 0.9
    assert torch.equal(network.module.features[1].weight, before)
    batch = source.batch(range(80))
    with torch.no_grad():
        said = network(batch.images)
    assert (said.argmax(1) == batch.labels).float().mean() > 0.9


def test_the_strongest_regularisation_that_does_as_well_as_the_best_is_taken():
    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    features = rng.normal(size=(150, 50)) + 3 * np.eye(50)[labels]
    x = (features - features.mean(0)) / features.std()
    said = [
        cross_val_predict(LogisticRegression(C=each), x, labels, cv=3, method="predict_proba") for each in STRENGTHS
    ]
    losses = [-np.log(each[np.arange(150), labels]).mean() for each in said]
    best = STRENGTHS[int(np.argmin(losses))]
    weight, _, _ = _fitted(features, labels, 3)
    norms = [np.linalg.norm(LogisticRegression(C=each).fit(x, labels).coef_) for each in (best, best / 10)]
    assert np.linalg.norm(weight * features.std()) == pytest.approx(norms[1], rel=1e-3)


def _domain(data):
    from onedomain.data.own import as_domain

    return as_domain(data)


def test_it_is_the_layer_of_z_and_of_nothing_else():
    network = own_network(Small(3), embedding="features")
    with torch.no_grad(), in_mode(network.module, training=False):
        assert last_layer(network, torch.rand(2, 3, 4, 4)) is network.module.head
    other = own_network(Small(3), embedding="features.0")
    with pytest.raises(UserError, match="head_start: the logits are no linear layer of 'features.0'"):
        start_head(other, _domain(images(20, 3)), torch.device("cpu"), shown=False)


def test_training_begins_from_it_and_a_resumed_run_does_not_fit_it_again(tmp_path, capsys):
    data = images(200, 4)
    settings = {"steps": 1, "learning_rate": 1e-9, "head_start": True}
    run = od.fit(od.ERM(**settings), data, network=Small(4), embedding="features", out=tmp_path / "run", progress=False)
    assert "frozen features: accuracy" in capsys.readouterr().err
    assert run.evaluate({"more": images(100, 4, seed=1)}).scores["more"].accuracy > 0.9
    again = od.fit(
        od.ERM(**settings),
        data,
        network=Small(4),
        embedding="features",
        out=tmp_path / "run",
        resume=True,
        progress=False,
    )
    assert "frozen features" not in capsys.readouterr().err
    assert torch.equal(again.network.module.head.weight, run.network.module.head.weight)


def test_statistics_of_batchnorm_stay_if_asked():
    class Normed(Small):
        def __init__(self) -> None:
            super().__init__(2)
            self.features.insert(2, nn.BatchNorm1d(8))

    for freeze in (False, True):
        network = Normed()
        method = od.ERM(steps=3, freeze_norm=freeze)
        run = od.fit(method, images(64, 2), network=network, progress=False)
        moved = run.network.module.features[2].num_batches_tracked.item()
        assert moved == (0 if freeze else 3)
