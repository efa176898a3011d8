"""Every method that learns labels of pixels: void ones never count, runs resume to the bit, BatchNorm behaves."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import onedomain as od
from onedomain.components.augmented_domains import Augmentation
from onedomain.components.equations import task_loss
from onedomain.components.meta import Model, batch_losses
from onedomain.data.domain import Domain
from onedomain.methods import method_class
from onedomain.networks import build_network, own_network
from tests.conftest import set_up

VOID = 7
DOMAINS = {"warm_up": 3, "domain_every": 2, "domain_size": 6, "wae_epochs": 1, "augmented_batch": 6, "ascent_steps": 2}
ROUNDS = {"rounds": 2, "round_every": 3, "round_size": 6, "ascent_steps": 2}
METHODS = [
    ("erm", {}),
    ("gud", ROUNDS),
    ("gud", {**ROUNDS, "gammas": "0.1,1"}),
    ("me-ada", ROUNDS),
    ("sdg", DOMAINS),
    ("sdg", {**DOMAINS, "auto_encoder": "segmentation"}),
    ("sdg", {**DOMAINS, "beta": 0.0}),
    ("sdg", {**DOMAINS, "alpha": 0.0}),
    ("sdg", {**DOMAINS, "meta": False}),
    ("uncertain-sdg", {"warm_up": 3, "prediction_draws": 2}),
    ("uncertain-sdg", {"warm_up": 3, "perturbed_weight": 1.0, "domains": 2, "prediction_draws": 2}),
    ("uncertain-sdg", {"warm_up": 3, "adversary": "burst", "burst_updates": 2, "prediction_draws": 0}),
    ("randconv", {"consistency": 1.0}),
    ("pro-randconv", {}),
    ("meta-randconv", {}),
    ("meta-randconv", {"convolution": "mixed", "domains": 2}),
    ("moved-randconv", {"turn": 0, "zoom": 0, "shear": 0, "shift": 0}),  # labels that move would leave the void rows
    ("jigen", {}),
]
IDS = ["-".join([name, *(key for key in settings if key not in {**DOMAINS, **ROUNDS})]) for name, settings in METHODS]


class PixelNet(nn.Module):
    """A network with BatchNorm, and an offset of its own for every class at every pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.score = nn.Conv2d(6, 3, 1)
        self.offset = nn.Parameter(torch.zeros(1, 3, 12, 16))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.score(torch.relu(self.norm(self.conv(images)))) + self.offset


def scenes(count=12, seed=0, name="scenes", void=VOID):
    """Bright above, red and green below; the last two rows are void."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((count, 12, 16), np.uint8)
    labels[:, 5:, :8], labels[:, 5:, 8:] = 1, 2
    colours = np.array([[220, 220, 220], [190, 30, 30], [30, 160, 40]])
    images = (colours[labels] + rng.integers(-25, 26, (count, 12, 16, 3))).clip(0, 255).astype(np.uint8)
    if void is not None:
        labels[:, 10:] = void
    return Domain(name, "train", images, labels, ("sky", "left", "right"), void)


def fit(name, settings, source=None, steps=14, module=None, **given):
    torch.manual_seed(1)
    configured = method_class(name)(
        **{"batch_size": 4, "learning_rate": 1e-2, "checkpoint_every": 3, "steps": steps, **settings}
    )
    return od.fit(
        configured,
        source or scenes(),
        network=module or PixelNet(),
        embedding="norm",
        perturb=["conv"],
        progress=False,
        **given,
    )


@pytest.mark.parametrize(("name", "settings"), METHODS, ids=IDS)
def test_it_learns_every_pixel_but_void_ones_and_says_how_sure_it_is_of_each(name, settings):
    run = fit(name, settings, steps=30)
    offset = run.network.module.offset.detach()
    assert not offset[:, :, 10:].any()  # what only void pixels see has never got a gradient
    assert offset[:, :, :10].any()
    assert run.evaluate({"new": scenes(5, seed=9)})["new"].miou > 0.8
    said = run.predict(scenes(3, seed=4).images)
    assert said.labels.shape == said.uncertainty.shape == said.mutual_information.shape == (3, 12, 16)
    assert said.probabilities.shape == (3, 3, 12, 16)
    assert said.domain_score.shape == (3,)


RESUMED = [
    ("gud", ROUNDS),
    ("sdg", DOMAINS),
    ("uncertain-sdg", {"warm_up": 3}),
    ("meta-randconv", {}),
]


@pytest.mark.parametrize(("name", "settings"), RESUMED, ids=[name for name, _ in RESUMED])
def test_killed_and_resumed_it_ends_with_the_same_bits(name, settings, tmp_path, monkeypatch):
    monkeypatch.setattr("onedomain.components.augmented_domains.PIXELS_WITH_GRADIENTS", 4 * 12 * 16)
    fit(name, settings, out=tmp_path / "whole")
    kind = method_class(name)
    original, done = kind.step, 0

    def killed(self, batch, step):
        nonlocal done
        done += 1
        if done == 9:
            raise KeyboardInterrupt
        return original(self, batch, step)

    monkeypatch.setattr(kind, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(name, settings, out=tmp_path / "killed")
    fit(name, settings, out=tmp_path / "killed", resume=True)
    files = sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.safetensors"))
    files += sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.npy"))
    assert len(files) >= 2
    for file in files:
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


@pytest.mark.parametrize(
    ("name", "settings"), [("sdg", DOMAINS), ("uncertain-sdg", {"warm_up": 0}), ("meta-randconv", {})]
)
def test_running_statistics_of_the_small_fcn_move_once_a_step_by_the_source_alone(name, settings):
    source = scenes()
    torch.manual_seed(0)
    method = method_class(name)(batch_size=4, **{**settings, "warm_up": 0} if "warm_up" in settings else settings)
    set_up(method, build_network("fcn-small", 3, (12, 16, 3)), source)
    batch = source.batch(range(4))
    list(method.prepare(1))
    expected = copy.deepcopy(method.network.module).train()
    expected(batch.images)
    method.network.module.train()
    method.step(batch, 1)
    moved = dict(method.network.module.named_buffers())
    for key, buffer in expected.named_buffers():
        assert torch.allclose(moved[key], buffer, atol=1e-6), key


def test_a_meta_step_with_batchnorm_is_that_of_each_domain_by_itself():
    """In one pass two domains would be normalised together."""
    torch.manual_seed(0)
    module = build_network("fcn-small", 3, (12, 16, 3)).module.train()
    nn.init.normal_(module.score.weight)
    bright, dark = scenes(4).batch(range(4)), scenes(4, seed=1).batch(range(4))
    dark = dark._replace(images=0.2 * dark.images)
    spare = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with torch.no_grad():
        losses = batch_losses(Model(module, {}, spare), [bright, dark], partial(task_loss, void=VOID))
        alone = [task_loss(copy.deepcopy(module)(images), labels, VOID).mean() for images, labels in (bright, dark)]
    assert losses.tolist() == pytest.approx([each.item() for each in alone], rel=1e-5)


def test_augmented_domains_look_their_masks_up(tmp_path):
    """S⁺ of S⁺: masks follow the images through two generations, and are nowhere copied."""
    source = scenes(6)
    numbered = source.images.copy()
    numbered[:, 0, 0, 0] = np.arange(6)
    masks = source.labels.copy()
    masks[:, 0, 0] = np.arange(6) % 3
    source = Domain("numbered", "train", numbered, masks, source.classes, VOID)
    augmentation = Augmentation(source, 6, (0,), None)
    for _ in range(2):
        list(augmentation.make(lambda batch: batch.images, "cpu"))
    for domain in augmentation.domains:
        assert not isinstance(domain.labels, np.ndarray)
        images, labels = domain.batch(range(6))
        numbers = (images[:, 0, 0, 0] * 255).round().long()
        assert (labels[:, 0, 0] == numbers % 3).all()
        assert (labels[:, 11] == VOID).all()


def test_frames_that_are_read_as_needed_train_like_frames_in_memory(tmp_path):
    source = scenes(6)
    for part in ("images", "labels"):
        (tmp_path / part).mkdir()
    for number in range(6):
        Image.fromarray(source.images[number]).save(tmp_path / "images" / f"{number}.png")
        Image.fromarray(source.labels[number]).save(tmp_path / "labels" / f"{number}.png")
    frames = od.frame_folder(tmp_path, classes=source.classes, size=(12, 16), void=VOID)
    one, other = (fit("sdg", DOMAINS, domain).network.module.state_dict() for domain in (source, frames))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_the_layers_of_the_library_s_networks_take_noise():
    for name in ("fcn-small", "fcn-32s"):
        method = method_class("uncertain-sdg")()
        set_up(method, build_network(name, 3, (64, 64, 3)), scenes(), torch.rand(2, 3, 64, 64))
        assert method.expand  # draws share what lies before the noise
        assert own_network(method.network.module, method.network.embedding, method.network.perturb)
