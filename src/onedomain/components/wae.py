"""The Wasserstein auto-encoder V (Eq. 6): its networks, and a training that goes on from any step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from onedomain.components.ascent import frozen
from onedomain.components.descent import adam, descend
from onedomain.components.equations import (
    discriminator_loss,
    gan_penalty,
    log_density,
    mmd_penalty,
    reconstruction_cross_entropy,
    reconstruction_error,
    wae_loss,
)
from onedomain.components.state import Stateful, check, check_names
from onedomain.data.domain import Domain
from onedomain.networks.distributed import average, in_shares

WAE_COST = 0.2  # time per image of a step of the dense V, relative to a step of ERM; 32 images of 3×32×32, one thread


class AutoEncoder(nn.Module):
    """V = G∘Q: an encoder to codes e of shape (N, code) and a decoder back to images in [0, 1]."""

    judge: tuple[int, ...] = (128,)  # hidden sizes of the discriminator that it is trained with; the paper's

    def __init__(self, encoder: nn.Module, decoder: nn.Module, code: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.code = code

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) → reconstructions of the same shape."""
        return self.decoder(self.encoder(x))


class DenseAutoEncoder(AutoEncoder):
    """Fully connected, the paper's for Digits: 3072-400-20-400-3072 for images of 3×32×32.

    >>> DenseAutoEncoder((3, 32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """

    def __init__(self, image_shape: tuple[int, int, int], hidden: int = 400, code: int = 20) -> None:
        pixels = prod(image_shape)
        super().__init__(
            nn.Sequential(nn.Flatten(), nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, code)),
            nn.Sequential(
                nn.Linear(code, hidden),
                nn.ReLU(),
                nn.Linear(hidden, pixels),
                nn.Sigmoid(),
                nn.Unflatten(1, image_shape),
            ),
            code,
        )


class ConvAutoEncoder(AutoEncoder):
    """Convolutional, the paper's for CIFAR-10: conv {16, 32, 32, 32}, fc {1024, 512} and back.

    Each layer but the last is followed by BN. The paper does not give the strides: here a 3×3 convolution
    halves the map as long as a side is above 8, so that 32×32 images reach the fully connected layers as
    32×8×8. The decoder mirrors every size exactly, odd ones too: any number of channels and any sides from 8
    will do.

    >>> ConvAutoEncoder((1, 9, 14))(torch.zeros(2, 1, 9, 14)).shape
    torch.Size([2, 1, 9, 14])
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        channels: Sequence[int] = (16, 32, 32, 32),
        hidden: int = 1024,
        code: int = 512,
        *,
        kernel: int = 3,
        stride: int = 2,
        small_enough: int = 8,
    ) -> None:
        image_channels, height, width = image_shape
        if min(height, width) < 8:
            raise ValueError(f"images of {height}×{width} are too small for {type(self).__name__}: sides from 8")
        down: list[nn.Module] = []
        up: list[nn.Module] = [nn.Sigmoid()]
        for before, after in zip((image_channels, *channels), channels, strict=False):
            step = stride if max(height, width) > small_enough else 1
            # A stride forgets where in it a side ended; the output padding of the way back remembers it.
            ended = ((height - 1) % step, (width - 1) % step)
            down += [nn.Conv2d(before, after, kernel, step, kernel // 2), nn.BatchNorm2d(after), nn.ReLU()]
            up = [
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.ConvTranspose2d(after, before, kernel, step, kernel // 2, ended),
                *up,
            ]
            height, width = -(-height // step), -(-width // step)
        maps = (channels[-1], height, width)
        down += [nn.Flatten(), nn.Linear(prod(maps), hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
        down += [nn.Linear(hidden, code), nn.BatchNorm1d(code)]
        grow = [nn.Linear(code, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
        grow += [nn.Linear(hidden, prod(maps)), nn.Unflatten(1, maps)]
        super().__init__(nn.Sequential(*down), nn.Sequential(*grow, *up), code)


class SegmentationAutoEncoder(ConvAutoEncoder):
    """The paper's for SYNTHIA: conv {32, 64, 128}, fc {3840, 512} and back, discriminator {512, 512, 1}.

    The paper gives neither strides nor the size of its images. Here a 5×5 convolution takes every fourth place as long
    as a side is above 4: images of 192×320 reach the fully connected layers as 128×3×5, those of 180×240 as 128×3×4.
    Halving, as for CIFAR-10, would leave 128×24×40, and 472 million weights in the first of these layers.

    >>> sum(parameter.numel() for parameter in SegmentationAutoEncoder((3, 192, 320)).parameters())
    19222275
    """

    judge = (512, 512)

    def __init__(self, image_shape: tuple[int, int, int], hidden: int = 3840, code: int = 512) -> None:
        super().__init__(image_shape, (32, 64, 128), hidden, code, kernel=5, stride=4, small_enough=4)


AUTO_ENCODERS: dict[str, Callable[[tuple[int, int, int]], AutoEncoder]] = {
    "dense": DenseAutoEncoder,
    "conv": ConvAutoEncoder,
    "segmentation": SegmentationAutoEncoder,
}


def discriminator(code: int, hidden: Sequence[int] = (128,)) -> nn.Sequential:
    """Tells codes from draws of the prior: (N, code) → logits (N, 1). The paper's is {128, 1}.

    >>> discriminator(20)(torch.zeros(4, 20)).shape
    torch.Size([4, 1])
    """
    layers: list[nn.Module] = []
    for inputs, outputs in zip((code, *hidden), hidden, strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((code, *hidden)[-1], 1))


@dataclass(frozen=True)
class WAESettings:
    """How V is trained; the defaults are those of Digits."""

    prior: Literal["gan", "mmd"] = "gan"  # D of Eq. 6: how codes are drawn to N(0, I)
    reconstruction: Literal["squared", "cross-entropy"] = "squared"  # first term of Eq. 6; released: cross-entropy
    prior_logits: bool = False  # log p(z) of the draws added to the discriminator's logits; released: true
    weight: float = 10.0  # λ, weight of the prior; the WAE paper's for MNIST
    rate: float = 1e-3  # of Adam; the paper's
    epochs: int = 20  # the paper's
    batch_size: int = 32


class WAETraining(Stateful):
    """The training of an auto-encoder, one step at a time.

    What is random in a step (which images, which draws from the prior) follows from `seed` and the number of
    the step alone. So a training that loads another's `state_dict()` goes on as that one would have, bit by
    bit. An epoch leaves out the images that do not fill a batch: other ones each time. `to_unit` brings images to the
    range from 0 to 1.
    """

    state = ("steps_done", "auto_encoder", "discriminator", "optimiser", "judging")

    def __init__(
        self,
        auto_encoder: AutoEncoder,
        images: Domain,
        settings: WAESettings,
        seed: int,
        to_unit: Callable[[Tensor], Tensor] = lambda images: images,
    ) -> None:
        self.auto_encoder = auto_encoder
        self.images = images
        self.to_unit = to_unit
        self.settings = settings
        self.seed = seed
        self.steps_done = 0
        self.steps_per_epoch = max(1, len(images) // settings.batch_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            device = next(auto_encoder.parameters()).device
            self.discriminator = discriminator(auto_encoder.code, auto_encoder.judge).to(device)
        self.optimiser, self.judging = adam(auto_encoder, settings.rate), adam(self.discriminator, settings.rate)
        self._order: tuple[int, np.ndarray[Any, np.dtype[np.int64]]] | None = None

    @property
    def steps_total(self) -> int:
        return self.settings.epochs * self.steps_per_epoch

    def step(self) -> dict[str, float]:
        """One batch: the discriminator learns (GAN prior only), then V by Eq. 6. Returns the mean losses."""
        x = self._next_images()
        prior_samples = self._prior_samples(len(x)).to(x)
        self.auto_encoder.train()
        codes, error = in_shares(self._passed, x)
        losses: dict[str, float] = {}
        if self.settings.prior == "gan":
            added = log_density(prior_samples)[:, None] if self.settings.prior_logits else 0.0
            on_prior, on_codes = self.discriminator(prior_samples) + added, self.discriminator(codes.detach()) + added
            judgement = discriminator_loss(on_prior, on_codes).mean()
            descend(self.judging, judgement)
            losses["discriminator"] = judgement.item()
            with frozen(self.discriminator):
                divergence = gan_penalty(self.discriminator(codes) + added)
        else:
            divergence = mmd_penalty(codes, prior_samples)
        descend(self.optimiser, wae_loss(error, divergence, self.settings.weight).mean())
        average(buffer for buffer in self.auto_encoder.buffers() if buffer.is_floating_point())
        self.steps_done += 1
        return {"reconstruction": error.mean().item(), "divergence": divergence.mean().item(), **losses}

    def _passed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Codes, and how badly images are reconstructed from them."""
        codes = self.auto_encoder.encoder(x)
        squared = self.settings.reconstruction == "squared"
        difference = reconstruction_error if squared else reconstruction_cross_entropy
        return codes, difference(x, self.auto_encoder.decoder(codes))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_names(self.state, state, "wae")
        check(self.steps_done, state["steps_done"], "steps_done")
        if not 0 <= state["steps_done"] <= self.steps_total:
            raise ValueError(f"steps_done is {state['steps_done']} of {self.steps_total}")
        super().load_state_dict(state)

    def _next_images(self) -> Tensor:
        epoch, position = divmod(self.steps_done, self.steps_per_epoch)
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, np.random.default_rng((self.seed, epoch)).permutation(len(self.images)))
        start = position * self.settings.batch_size
        images, _ = self.images.batch(self._order[1][start : start + self.settings.batch_size])
        return self.to_unit(images.to(next(self.auto_encoder.parameters()).device))

    def _prior_samples(self, count: int) -> Tensor:
        # The third number keeps these draws apart from the orders of the epochs.
        entropy = np.random.SeedSequence((self.seed, self.steps_done, 1)).generate_state(1)
        generator = torch.Generator().manual_seed(int(entropy[0]))
        return torch.randn(count, self.auto_encoder.code, generator=generator)
