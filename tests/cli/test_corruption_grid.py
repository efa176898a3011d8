"""Train and evaluate on `cifar10-c-lite`: one grid of 95 targets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onedomain.benchmarks import BENCHMARKS, find_benchmark
from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.data.datasets.cifar_c import REGENERATED_LITE
from onedomain.data.datasets.regenerate import MADE, file_name

IMAGES = 6  # of each target


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CIFAR-10 and its corruptions in our prepared forms, of noise: 3,010 test images, of which six are corrupted."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    test = rng.integers(0, 256, (3_010, 32, 32, 3), dtype=np.uint8)
    train = rng.integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(3_010) % 10
    made = folder / REGENERATED_LITE
    made.mkdir(parents=True)
    np.savez(folder / "cifar10" / "cifar10.npz", x_train=train, y_train=labels[:30], x_test=test, y_test=labels)
    (made / MADE).write_text(json.dumps({"images": IMAGES}))
    np.save(made / "labels.npy", np.tile(labels[:IMAGES], 5).astype(np.uint8))
    for kind in KINDS:
        if kind != "frost":
            blocks = [rng.integers(0, 256, (IMAGES, 32, 32, 3), dtype=np.uint8) for _ in SEVERITIES]
            np.save(made / file_name(kind), np.concatenate(blocks))
    return folder


def test_train_and_evaluate(onedomain, data, tmp_path, monkeypatch):
    benchmark = find_benchmark("cifar10-c-lite")
    quick = replace(benchmark, held_out=lambda folder: benchmark.held_out(folder).subset(range(20)))
    monkeypatch.setitem(BENCHMARKS, "cifar10-c-lite", quick)
    common = ["--benchmark", "cifar10-c-lite", "--steps", 1, "--set", "batch_size=4", "--data", data]
    code, out, err = onedomain("train", "--method", "augmix", *common, "--out", tmp_path / "own")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    grid = {words[0]: words[1:] for words in lines if words and words[0] in KINDS}
    assert len(grid) == 19
    assert all(len(cells) == 6 for cells in grid.values())
    assert grid["frost"] == ["–"] * 6
    assert len(lines) < 60
    assert "mean of 18 of 19 corruptions" in out
    assert "regenerated, 6 of 1,000 images. 6 images of each." in out
    assert err.count("not scored: domain 'frost'") == 1
    make = "onedomain train --benchmark cifar10-c-lite --method erm --seed 0 --steps 1 --set batch_size=4 --out"
    assert f"{make} {tmp_path / 'own-erm'}" in out

    assert onedomain("train", "--method", "erm", *common, "--out", tmp_path / "own-erm")[0] == 0
    code, out, _ = onedomain("evaluate", tmp_path / "own", "--data", data, "--json")
    document = json.loads(out)
    found = document["robustness"]
    assert len(document["domains"]) == 1 + 90
    assert found["missing"] == ["frost"]
    assert found["relative_to_erm"]["erm"] == str(tmp_path / "own-erm")
    own = {name: 1 - scores["accuracy"] for name, scores in document["domains"].items()}
    records = (tmp_path / "own-erm" / "results.jsonl").read_text().splitlines()
    erm = {r["domain"]: 1 - r["value"] for r in map(json.loads, records) if r["metric"] == "accuracy"}
    kinds = [kind for kind in KINDS if kind != "frost"]
    assert found["relative_to_erm"]["worst"]["mce"] == pytest.approx(
        np.mean([own[f"{kind}-5"] / erm[f"{kind}-5"] for kind in kinds])
    )
    assert found["mean"]["all"]["corruptions"] == pytest.approx(
        np.mean([1 - own[f"{kind}-{severity}"] for kind in kinds for severity in SEVERITIES])
    )


def test_what_is_missing_is_named_before_training(onedomain, data, tmp_path):
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "cifar10.npz").symlink_to(data / "cifar10" / "cifar10.npz")
    code, _, err = onedomain("train", "--benchmark", "cifar10-c", "--data", tmp_path, "--out", tmp_path / "run")
    assert code == 2
    assert "from the test images: onedomain data prepare cifar10-c" in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_95_targets_cost_no_memory(data):
    domains, missing = find_benchmark("cifar10-c-lite").load_for_scoring(data)
    assert (len(domains), len(missing)) == (91, 1)
    assert all(isinstance(domain.images, np.memmap) for name, domain in domains.items() if name != "cifar10")
