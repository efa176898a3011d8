from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from onedomain.components.equations import mmd_penalty, reconstruction_cross_entropy, reconstruction_error
from onedomain.components.wae import (
    AutoEncoder,
    ConvAutoEncoder,
    DenseAutoEncoder,
    SegmentationAutoEncoder,
    WAESettings,
    WAETraining,
    discriminator,
)

SMALL = (1, 8, 8)


class Blobs:
    """Images of one bright spot each, at a random place: two numbers describe an image."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        centre = torch.rand(count, 2, 1, 1, generator=generator) * 6 + 0.5
        grid = torch.arange(8.0)
        squared = (grid.view(1, 8, 1) - centre[:, 0]) ** 2 + (grid.view(1, 1, 8) - centre[:, 1]) ** 2
        self.images = torch.exp(-squared / 4).unsqueeze(1)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: Any) -> tuple[Tensor, Tensor]:
        return self.images[indices], torch.zeros(len(indices), dtype=torch.int64)


def small_auto_encoder(kind: type[AutoEncoder] = DenseAutoEncoder) -> AutoEncoder:
    torch.manual_seed(0)
    return kind(SMALL, hidden=32, code=4)


def fit_wae(
    auto_encoder: AutoEncoder,
    images: Blobs,
    settings: WAESettings,
    progress: Callable[[WAETraining, dict[str, float]], None] = lambda training, losses: None,
) -> AutoEncoder:
    """Train V to the end, and return it in eval mode."""
    training = WAETraining(auto_encoder, images, settings, seed=0)
    while training.steps_done < training.steps_total:
        progress(training, training.step())
    return auto_encoder.eval()


def parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_dense_auto_encoder_has_the_papers_parameters() -> None:
    # With the LeNet's 4,547,466 this is the paper's 7.02 M.
    assert parameters(DenseAutoEncoder((3, 32, 32))) == 2_477_492
    assert parameters(discriminator(20)) == 20 * 128 + 128 + 128 + 1


def test_the_conv_auto_encoder_has_the_papers_layers() -> None:
    model = ConvAutoEncoder((3, 32, 32))

    def outputs(module: torch.nn.Module, kind: type[torch.nn.Module], size: str) -> list[int]:
        return [getattr(layer, size) for layer in module if isinstance(layer, kind)]

    assert outputs(model.encoder, torch.nn.Conv2d, "out_channels") == [16, 32, 32, 32]
    assert outputs(model.encoder, torch.nn.Linear, "out_features") == [1024, 512]
    assert outputs(model.decoder, torch.nn.Linear, "in_features") == [512, 1024]
    assert outputs(model.decoder, torch.nn.ConvTranspose2d, "out_channels") == [32, 32, 16, 3]
    layers = [layer for part in (model.encoder, model.decoder) for layer in part]
    kinds = (torch.nn.Conv2d, torch.nn.Linear, torch.nn.ConvTranspose2d)
    followers = [after for layer, after in pairwise(layers) if isinstance(layer, kinds)]
    normalised = [isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d) for layer in followers]
    # The last fully connected layer is normalised per channel, once it is a map again.
    assert [type(layer) for layer, bn in zip(followers, normalised, strict=True) if not bn] == [
        torch.nn.Unflatten,
        torch.nn.Sigmoid,
    ]


def test_the_segmentation_auto_encoder_has_the_papers_layers_and_fits_the_images() -> None:
    model = SegmentationAutoEncoder((3, 192, 320))
    sizes = [
        (layer.in_features, layer.out_features)
        for part in (model.encoder, model.decoder)
        for layer in part
        if isinstance(layer, torch.nn.Linear)
    ]
    assert sizes == [(128 * 3 * 5, 3840), (3840, 512), (512, 3840), (3840, 128 * 3 * 5)]
    channels = [layer.out_channels for layer in model.encoder if isinstance(layer, torch.nn.Conv2d)]
    assert channels == [32, 64, 128]
    back = [layer.out_channels for layer in model.decoder if isinstance(layer, torch.nn.ConvTranspose2d)]
    assert back == [64, 32, 3]
    training = WAETraining(model, Blobs(4), WAESettings(batch_size=2), seed=0)
    judge = [layer.out_features for layer in training.discriminator if isinstance(layer, torch.nn.Linear)]
    assert judge == [512, 512, 1]


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 28, 28), (4, 9, 31), (2, 65, 17), (3, 8, 40)])
@pytest.mark.parametrize("kind", [DenseAutoEncoder, ConvAutoEncoder, SegmentationAutoEncoder])
def test_any_image_size_comes_back_in_its_own_shape(kind: type[AutoEncoder], shape: tuple[int, int, int]) -> None:
    model = kind(shape, hidden=16, code=5)
    x = torch.rand(3, *shape)
    assert model.encoder(x).shape == (3, model.code) == (3, 5)
    reconstruction = model(x)
    assert reconstruction.shape == x.shape
    assert reconstruction.min() >= 0
    assert reconstruction.max() <= 1


def test_images_that_are_too_small_for_convolutions_are_refused() -> None:
    with pytest.raises(ValueError, match="7×9"):
        ConvAutoEncoder((3, 7, 9))


def test_discriminator_sizes_are_free() -> None:
    model = discriminator(6, hidden=(5, 4))
    assert parameters(model) == 6 * 5 + 5 + 5 * 4 + 4 + 4 + 1


@pytest.mark.parametrize("prior", ["gan", "mmd"])
@pytest.mark.parametrize("kind", [DenseAutoEncoder, ConvAutoEncoder])
def test_training_lowers_the_reconstruction_error(kind: type[AutoEncoder], prior: str) -> None:
    images = Blobs(256)
    model = small_auto_encoder(kind)

    def error() -> float:
        with torch.no_grad():
            return reconstruction_error(images.images, model.eval()(images.images)).mean().item()

    before = error()
    settings = WAESettings(prior=prior, weight=0.1, rate=1e-2, epochs=12)
    assert fit_wae(model, images, settings) is model
    assert not model.training
    assert error() < 0.25 * before


@pytest.mark.parametrize("prior", ["gan", "mmd"])
def test_the_weight_draws_the_codes_to_the_prior(prior: str) -> None:
    images = Blobs(256)
    distances = []
    for weight in (0.0, 0.3):
        model = small_auto_encoder()
        fit_wae(model, images, WAESettings(prior=prior, weight=weight, rate=3e-3, epochs=30))
        with torch.no_grad():
            draws = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
            distances.append(mmd_penalty(model.encoder(images.images), draws).item())
    assert distances[1] < 0.5 * distances[0]


def state(training: WAETraining) -> dict[str, Tensor]:
    """The state as one flat dictionary of tensors."""
    flat: dict[str, Tensor] = {}

    def visit(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(f"{name}.{key}", inner)
        elif isinstance(value, Tensor):
            flat[name] = value.detach().clone()
        else:
            flat[name] = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)

    visit("state", training.state_dict())
    return flat


def assert_identical(left: dict[str, Tensor], right: dict[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


@pytest.mark.parametrize("prior", ["gan", "mmd"])
@pytest.mark.parametrize("kind", [DenseAutoEncoder, ConvAutoEncoder])
@pytest.mark.parametrize("stopped_after", [0, 5])
def test_a_killed_training_goes_on_bit_by_bit(kind: type[AutoEncoder], prior: str, stopped_after: int) -> None:
    images = Blobs(70)
    settings = WAESettings(prior=prior, epochs=4, batch_size=16)  # four steps an epoch: killed in the second

    def training() -> WAETraining:
        return WAETraining(small_auto_encoder(kind), images, settings, seed=3)

    whole = training()
    for _ in range(whole.steps_total):
        whole.step()

    killed = training()
    for _ in range(stopped_after):
        killed.step()
    file = io.BytesIO()
    torch.save(killed.state_dict(), file)
    file.seek(0)
    resumed = training()
    resumed.step()  # whatever it did before loading must not matter
    torch.manual_seed(99)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    while resumed.steps_done < resumed.steps_total:
        resumed.step()
    assert_identical(state(resumed), state(whole))


def test_the_seed_decides_everything_and_the_global_generator_nothing() -> None:
    def trained(seed: int, elsewhere: int) -> dict[str, Tensor]:
        model = small_auto_encoder()
        torch.manual_seed(elsewhere)
        training = WAETraining(model, Blobs(64), WAESettings(epochs=1), seed)
        while training.steps_done < training.steps_total:
            training.step()
        assert torch.initial_seed() == elsewhere
        return state(training)

    first = trained(seed=0, elsewhere=5)
    assert_identical(first, trained(seed=0, elsewhere=6))
    other = trained(seed=1, elsewhere=5)
    assert not torch.equal(first["state.auto_encoder.encoder.1.weight"], other["state.auto_encoder.encoder.1.weight"])


def test_progress_sees_every_step_and_every_epoch_another_order() -> None:
    orders: list[Tensor] = []

    class Watched(Blobs):
        def batch(self, indices: Any) -> tuple[Tensor, Tensor]:
            orders.append(torch.as_tensor(indices))
            return super().batch(indices)

    steps: list[int] = []
    kept: list[dict[str, float]] = []
    settings = WAESettings(epochs=2, batch_size=16)

    def progress(training: WAETraining, losses: dict[str, float]) -> None:
        assert training.steps_total == 8
        steps.append(training.steps_done)
        kept.append(losses)

    fit_wae(small_auto_encoder(), Watched(70), settings, progress=progress)
    assert steps == list(range(1, 9))
    assert all(losses.keys() == {"reconstruction", "divergence", "discriminator"} for losses in kept)
    first, second = torch.cat(orders[:4]), torch.cat(orders[4:])
    assert len(set(first.tolist())) == len(set(second.tolist())) == 64  # no image twice in an epoch
    assert first.tolist() != second.tolist()


def test_every_step_draws_anew_from_the_prior() -> None:
    training = WAETraining(small_auto_encoder(), Blobs(64), WAESettings(), seed=0)
    judged: list[Tensor] = []
    training.discriminator.register_forward_pre_hook(lambda _, inputs: judged.append(inputs[0].detach()))
    training.step()
    training.step()
    draws = torch.cat([judged[0], judged[3]])  # a step judges draws, then codes twice
    assert len(draws.unique(dim=0)) == 64
    torch.testing.assert_close(draws.mean(), torch.tensor(0.0), rtol=0, atol=0.2)
    torch.testing.assert_close(draws.std(), torch.tensor(1.0), rtol=0, atol=0.2)


def test_fewer_images_than_a_batch_are_one_batch() -> None:
    training = WAETraining(small_auto_encoder(), Blobs(5), WAESettings(epochs=3), seed=0)
    assert training.steps_total == 3
    assert training.step()["reconstruction"] > 0


def test_discriminator_and_auto_encoder_each_follow_their_own_loss() -> None:
    def trained(**settings: Any) -> dict[str, Tensor]:
        training = WAETraining(small_auto_encoder(), Blobs(64), WAESettings(**settings), seed=0)
        training.step()
        return state(training)

    def part(name: str, whole: dict[str, Tensor]) -> dict[str, Tensor]:
        return {key: value for key, value in whole.items() if key.startswith(f"state.{name}.")}

    judged, unjudged, alone = trained(weight=10.0), trained(weight=0.0), trained(prior="mmd", weight=0.0)
    # How much V cares for the prior does not reach the discriminator, nor the discriminator's loss V.
    assert_identical(part("discriminator", judged), part("discriminator", unjudged))
    assert_identical(part("auto_encoder", unjudged), part("auto_encoder", alone))
    assert not torch.equal(*(s["state.auto_encoder.encoder.1.weight"] for s in (judged, unjudged)))


def test_cross_entropy_of_pixels_by_hand() -> None:
    x, drawn = torch.tensor([[[[1.0, 0.25, 1.7]]]]), torch.tensor([[[[0.5, 0.5, 0.9]]]])
    expected = -(math.log(0.5) + 0.25 * math.log(0.5) + 0.75 * math.log(0.5) + math.log(0.9))
    assert reconstruction_cross_entropy(x, drawn).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("reconstruction", ["squared", "cross-entropy"])
def test_either_loss_makes_reconstructions_better(reconstruction: str) -> None:
    torch.manual_seed(0)
    settings = WAESettings(reconstruction=reconstruction, epochs=30)  # type: ignore[arg-type]
    training = WAETraining(small_auto_encoder(), Blobs(96), settings, seed=0)
    losses = [training.step()["reconstruction"] for _ in range(training.steps_total)]
    assert losses[-1] < 0.9 * losses[0]


def test_log_density_of_the_draws_is_added_to_both_logits_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """−2/2·ln 2π − ½‖z‖² of the draw z = (1, 2) beside the logits 3 of the draw and of the code."""
    training = WAETraining(DenseAutoEncoder((1, 8, 8), 4, 2), Blobs(1), WAESettings(prior_logits=True), seed=0)
    draw = torch.tensor([[1.0, 2.0]])
    monkeypatch.setattr(training, "_prior_samples", lambda count: draw)
    monkeypatch.setattr(training, "discriminator", torch.nn.Linear(2, 1))
    torch.nn.init.zeros_(training.discriminator.weight)
    torch.nn.init.constant_(training.discriminator.bias, 3.0)
    logit = 3.0 - math.log(2 * math.pi) - 2.5
    losses = training.step()
    assert losses["discriminator"] == pytest.approx(
        math.log1p(math.exp(-logit)) + math.log1p(math.exp(logit)), abs=1e-5
    )
    assert losses["divergence"] == pytest.approx(math.log1p(math.exp(-logit)), abs=1e-5)
