"""What a method is: settings, one set-up, `step(batch, step)`, and a state that can be saved."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from onedomain.components.augmentations.flips_and_crops import flipped_and_cropped
from onedomain.components.descent import descend, new_optimiser
from onedomain.components.predictive import Predictive
from onedomain.components.state import Stateful
from onedomain.data.domain import Batch, Domain
from onedomain.methods import METHODS
from onedomain.networks import NamedNetwork
from onedomain.networks.precision import HALVES
from onedomain.settings import Settings, parse_settings


@dataclass(frozen=True)
class Part:
    """A part of long work between two steps: what it is, how much of it is done (0 to 1), values to show.

    `record` keeps measurements of a generated domain: its name and the values.
    """

    what: str
    done: float
    values: Mapping[str, float] = field(default_factory=dict)
    record: tuple[str, Mapping[str, float]] | None = None


@dataclass(frozen=True)
class Setup:
    """All that a method works with. Without a `source` it is trained already, and only answers."""

    network: NamedNetwork
    images: torch.Tensor  # a few of the right shape, to try layers on
    device: torch.device
    source: Domain | None = None
    shots: Domain | None = None  # the images that an adaptation drew from its target
    seed: int = 0
    folder: Path | None = None  # of the run, for what is too large for memory


class Method(Stateful, ABC):
    """A training algorithm. A subclass is one file: its `Settings` and its algorithm.

    `set_up` is called once; the loop then calls `step` with one batch of the source after the other and the number of
    the step. `step` may draw random numbers freely: the loop seeds them anew at every step, so that a resumed run
    draws the same ones. `state` names the attributes that hold whatever else changes from step to step: networks,
    optimisers, lists of them, numbers.
    """

    Settings: ClassVar[type[Settings]] = Settings
    summary: ClassVar[str]  # for `onedomain methods`: up to 57 characters are shown whole
    citation: ClassVar[str]
    cost: ClassVar[float | None] = None  # time of a step relative to ERM's (`python -m bench methods`)
    needs_embedding: ClassVar[bool] = False  # whether it looks at z = F(x)
    balanced: ClassVar[bool] = False  # whether every batch should hold classes in equal numbers, at least in pairs
    dense: ClassVar[bool] = True  # whether it can learn segmentation
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # other forms of it by name, as settings
    auxiliary: nn.Module | None = None  # what is learned beside the network and needed after training, such as φ

    network: NamedNetwork
    source: Domain
    device: torch.device
    seed: int
    folder: Path | None
    image_shape: tuple[int, int, int]  # channels, height, width

    def __init__(self, **settings: Any) -> None:
        self.settings = parse_settings(self.Settings, settings)

    @property
    def name(self) -> str:
        """What `--method` calls it; the class's name for a user's own."""
        return METHODS.name_of(type(self))

    def set_up(self, setup: Setup) -> None:
        """Take the network, on the device and in the memory layout that is fastest there, and all else that is given.

        A subclass calls this first, then makes what it needs: optimisers, and what is learned beside the network.
        """
        self.network = replace(setup.network, half=HALVES[self.settings.precision])
        self.device, self.seed, self.folder = setup.device, setup.seed, setup.folder
        self.scaler = torch.amp.GradScaler(setup.device.type, enabled=self.settings.precision == "float16")
        self.scaler.scale(torch.zeros((), device=setup.device))  # so that it has a scale from now on
        if setup.source is not None:
            self.source = setup.source
        channels, height, width = setup.images.shape[1:]
        self.image_shape = (channels, height, width)
        self.scheduled: list[torch.optim.Optimizer] = []
        self.network.module.to(setup.device)
        for layer in self.network.module.modules():
            if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)

    def train_mode(self) -> None:
        """Put what answers into train mode; its BatchNorm layers keep their statistics if the settings say so."""
        for network in self.answering:
            for layer in network.module.train().modules():
                if self.settings.freeze_norm and hasattr(layer, "running_mean"):
                    layer.eval()

    def optimiser_for(self, *modules: nn.Module) -> torch.optim.Optimizer:
        """A new optimiser of these modules, as the settings say; the loop sets its rate at every step."""
        self.scheduled.append(new_optimiser(nn.ModuleList(modules), self.settings))
        return self.scheduled[-1]

    def set_rate(self, step: int) -> None:
        """Give the optimisers this step's rate: a function of the step alone, so that resuming stays exact."""
        if self.settings.schedule == "cosine":
            rate = self.settings.learning_rate * (1 + math.cos(math.pi * step / self.settings.steps)) / 2
            for group in (group for optimiser in self.scheduled for group in optimiser.param_groups):
                group["lr"] = rate

    def varied(self, batch: Batch) -> Batch:
        """A training batch, flipped and cropped if the settings say so; as it is otherwise."""
        return flipped_and_cropped(batch) if self.settings.flips_and_crops else batch

    @property
    def training_parameters(self) -> int:
        """How many parameters are trained, those beside the network included."""
        return sum(each.numel() for module in self.modules for each in module.parameters())

    @property
    def modules(self) -> list[nn.Module]:
        """What is trained: those of the state that are networks."""
        parts = [part for name in self.state for part in _as_list(getattr(self, name, None))]
        modules = [part.module if isinstance(part, NamedNetwork) else part for part in parts]
        return [module for module in modules if isinstance(module, nn.Module)]

    @property
    def answering(self) -> tuple[NamedNetwork, ...]:
        """The networks that answer: more than one is an ensemble."""
        return (self.network,)

    @torch.no_grad()
    def predictive(self, images: torch.Tensor, draws: int | None = None) -> Predictive:
        """What a trained network predicts of images; `draws` overrides the settings' number of Monte-Carlo draws."""
        self.network.module.eval()
        logits, z = self.network.look(images)
        return Predictive(logits.double().softmax(1)[None], embedding=z)

    @property
    def step_cost(self) -> float:
        """Estimated time of a step with these settings, in steps of ERM."""
        return self.cost or 1.0

    def preparation_cost(self, images: int) -> float:
        """Estimated time of all that `prepare` does in a run on `images` source images, in steps of ERM."""
        return 0.0

    @property
    def prepared(self) -> float:
        """How much of that is done, from 0 to 1."""
        return 1.0

    @property
    def begins(self) -> int:
        """The number of steps before the method does anything that ERM does not."""
        return 0

    def prepare(self, step: int) -> Iterator[Part]:
        """Long work that is due before this step, part by part; none for most methods.

        The loop shows each part and saves checkpoints between them. After a kill it is called again, with the state
        that was saved.
        """
        yield from ()

    @abstractmethod
    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        """Learn from one batch; the values to log, as scalars without gradients. One of them is `loss`."""

    @property
    def snapshot_steps(self) -> tuple[int, ...]:
        """The numbers of steps after which the loop takes a `snapshot`; none for most methods."""
        return ()

    def snapshot(self, batch: Batch) -> dict[str, np.ndarray]:
        """What figures show over training of a fixed sample of the source: small arrays by name."""
        return {}


class AdamMethod(Method):
    """A method whose state is the network, its optimiser, and `head` if training needs one that prediction does not."""

    state: ClassVar[tuple[str, ...]] = ("network", "head", "optimiser")
    head: nn.Module | None

    def set_up(self, setup: Setup) -> None:
        super().set_up(setup)
        self.head = self.new_head(setup.images)
        self.optimiser = self.optimiser_for(self.network.module, *([] if self.head is None else [self.head]))

    def new_head(self, images: torch.Tensor) -> nn.Module | None:
        """What is trained along with the network and not needed afterwards; nothing for most methods."""
        return None


class LossMethod(AdamMethod):
    """A method that is a loss."""

    @abstractmethod
    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        """What is minimised, as `loss`, and what else is worth logging: scalars."""

    def step(self, batch: Batch, step: int) -> dict[str, torch.Tensor]:
        return descend(self.optimiser, scaler=self.scaler, **self.losses(batch))


def _as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]
