from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import onedomain as od
from onedomain.errors import UserError
from onedomain.networks import build_network
from onedomain.networks.pretrained import load_pretrained, usual_weights

transformers = pytest.importorskip("transformers")


@pytest.fixture
def vit(tmp_path):
    """A tiny ViT for seven classes, as `save_pretrained` leaves it."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8
    )
    config.num_labels = 7
    model = transformers.ViTForImageClassification(config)
    model.save_pretrained(tmp_path / "vit")
    (tmp_path / "vit" / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0.5] * 3, "image_std": [0.25] * 3})
    )
    return tmp_path / "vit", model.eval()


def test_it_gives_what_the_model_gives_of_normalised_images(vit):
    path, theirs = vit
    network = build_network(f"hf:{path}", 7, (16, 16, 3))
    loaded = load_pretrained(network.module, usual_weights(network.module))
    assert loaded == "model.safetensors: 24 of 24 tensors of the network loaded"
    network.module.eval()
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        logits, z = network.embed(images)
        assert torch.allclose(logits, theirs(pixel_values=(images - 0.5) / 0.25).logits, atol=1e-6)
        assert torch.allclose(logits, theirs.classifier(z), atol=1e-6)


def test_a_head_for_other_classes_starts_afresh(vit):
    network = build_network(f"hf:{vit[0]}", 3, (16, 16, 3))
    loaded = load_pretrained(network.module, usual_weights(network.module))
    assert loaded.endswith("as initialised: model.classifier.linear.bias, model.classifier.linear.weight")
    assert network(torch.rand(2, 3, 16, 16)).shape == (2, 3)


def test_what_would_fetch_or_run_anything_is_left_out_of_a_configuration(vit):
    path, _ = vit
    config = json.loads((path / "config.json").read_text())
    more = {"_attn_implementation": "nobody/kernel", "attn_implementation": "nobody/kernel"}
    code = {"auto_map": {"AutoModelForImageClassification": "nobody/model--code.Model"}}
    (path / "config.json").write_text(json.dumps(config | more | code | {"use_kernels": True}))
    described = build_network(f"hf:{path}", 7, (16, 16, 3)).module.described
    assert described._attn_implementation in ("sdpa", "eager")
    assert not {"auto_map", "use_kernels"} & vars(described).keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 500_000}, "more than 10,000 layers"),
        ({"num_hidden_layers": 10**400}, "a number above 1,000,000"),
        ({"hidden_size": 40_000, "intermediate_size": 160_000}, "more than 4,000,000,000 parameters"),
        ({"image_size": 10**6, "patch_size": 1}, "more than 4,000,000,000 parameters"),
    ],
)
def test_a_network_that_no_machine_can_build_is_refused_at_once(change, said, vit):
    path, _ = vit
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match=f"cannot be built .it has {said}"):
        build_network(f"hf:{path}", 7, (16, 16, 3))


@pytest.mark.parametrize(
    "images", [{"image_mean": ["a"]}, {"image_std": [0, 1, 1]}, {"image_mean": 5}, {"image_std": []}]
)
def test_pixels_are_brought_to_scale_by_numbers_alone(images, vit):
    path, _ = vit
    (path / "preprocessor_config.json").write_text(json.dumps(images))
    with pytest.raises(UserError, match=f"has {next(iter(images))} .*a number for each channel"):
        build_network(f"hf:{path}", 7, (16, 16, 3))


def test_a_run_needs_nothing_but_its_folder(vit, tmp_path):
    path, _ = vit
    rng = np.random.default_rng(0)
    data = rng.integers(0, 255, (40, 16, 16, 3), dtype=np.uint8), np.arange(40) % 3
    run = od.fit(od.ERM(steps=2), data, network=f"hf:{path}", out=tmp_path / "run", progress=False)
    for file in path.iterdir():
        file.unlink()
    again = od.load(tmp_path / "run")
    assert np.array_equal(again.predict(data[0]).probabilities, run.predict(data[0]).probabilities)


def test_meta_steps_go_through_attention(vit):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 255, (40, 16, 16, 3), dtype=np.uint8), np.arange(40) % 3
    settings = {"steps": 4, "warm_up": 1, "domain_every": 1, "domain_size": 8, "domains": 1, "wae_epochs": 1}
    run = od.fit(od.SDG(**settings, ascent_steps=2, inner_rate=0.1), data, network=f"hf:{vit[0]}", progress=False)
    assert all(np.isfinite(row["loss"]) for row in run.history if "loss" in row)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "has no config.json"),
        ({"config.json": "no json"}, "cannot be read"),
        ({"config.json": '{"model_type": "unheard-of"}'}, "cannot be built"),
        ({"config.json": '{"model_type": "bert"}'}, "cannot be built"),
        ({"config.json": "[1]"}, "holds a list; allowed: a JSON object"),
    ],
)
def test_what_is_no_classifier_is_one_line(tmp_path, content, message):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        build_network(f"hf:{tmp_path}", 3, (16, 16, 3))
    with pytest.raises(UserError, match=r"is not a folder; allowed: hf:FOLDER"):
        build_network(f"hf:{tmp_path}/none/there", 3, (16, 16, 3))
