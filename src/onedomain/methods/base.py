"""What a method is: settings, `begin(source)`, `step(batch)`, and a state that can be saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch

from onedomain.data.domain import Batch, Domain
from onedomain.networks import NamedNetwork
from onedomain.settings import Settings, parse_settings


class Method(ABC):
    """A training algorithm. A subclass is one file: its `Settings` and its algorithm.

    The loop attaches a network, calls `begin` once with the source domain and `step` with one batch of it after the
    other. `step` may draw random numbers freely: the loop seeds them anew at every step, so that a resumed run
    draws the same ones. Whatever else changes from step to step belongs into `state_dict`.
    """

    Settings: ClassVar[type[Settings]] = Settings
    summary: ClassVar[str]  # one line for `onedomain methods`
    citation: ClassVar[str]

    network: NamedNetwork
    device: torch.device

    def __init__(self, **settings: Any) -> None:
        self.settings = parse_settings(self.Settings, settings)

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    def attach(self, network: NamedNetwork, device: torch.device) -> None:
        """Take the network to train, on the device and in the memory layout that is fastest there."""
        self.network, self.device = network, device
        network.module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @abstractmethod
    def begin(self, source: Domain) -> None:
        """Prepare for training on `source`: make the optimisers and what else the steps need."""

    @abstractmethod
    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Learn from one batch; the values to log, as scalars without gradients. One of them is `loss`."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on exactly: tensors and JSON values, nested freely."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state; called after `begin`."""


def adam(network: NamedNetwork, learning_rate: float) -> torch.optim.Adam:
    """Adam in its fused form: on a CPU the plain one takes longer than the LeNet's forward pass."""
    return torch.optim.Adam(network.module.parameters(), lr=learning_rate, fused=True)
