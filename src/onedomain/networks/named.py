"""The named-layer contract: what a method may ask of any network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from onedomain.data.domain import Domain
from onedomain.errors import UserError, unknown
from onedomain.networks.distributed import in_shares
from onedomain.networks.hub import PREFIX, HubClassifier
from onedomain.networks.precision import full, passing
from onedomain.networks.registry import find_network

IMAGE = "(image)"  # in the place of a layer's name: what the network is given, before its first layer


@dataclass(frozen=True)
class NamedNetwork:
    """A classifier as it is, with the names of the layers that methods look into.

    `embedding` names the layer whose output is z = F(x); `perturb` the layers whose outputs Uncertain SDG perturbs.
    In train mode, processes that train together pass a share of the images each, and have the answers of all.
    `name` says which of the library's networks it is, `own` the class of a network of the user's. `half` is the type in
    which it passes images, None for that of its weights; what it gives is in full precision.
    """

    module: nn.Module
    name: str | None = None
    own: str | None = None
    embedding: str | None = None
    perturb: tuple[str, ...] = ()
    half: torch.dtype | None = None

    def __post_init__(self) -> None:
        layers = [name for name, _ in self.module.named_modules() if name]
        perturb = self.perturb[1:] if self.perturb[:1] == (IMAGE,) else self.perturb
        for field, name in [("embedding", self.embedding), *(("perturb", name) for name in perturb)]:
            if name is not None and name not in layers:
                raise unknown(field, str(name), layers)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return in_shares(self._logits, images) if self.module.training else self._logits(images)

    def _logits(self, images: torch.Tensor) -> torch.Tensor:
        with passing(self.half, images.device):
            logits: torch.Tensor = logits_of(self.module(images))
        return full(logits) if isinstance(logits, torch.Tensor) else logits

    def embed(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and z = F(x) from one forward pass."""
        if self.embedding is None:
            layers = ", ".join(name for name, _ in self.module.named_modules() if name)
            raise UserError("embedding", "your network's embedding layer is not named", f"one of {layers}")
        logits, z = self.look(images)
        if z is None:
            raise UserError(
                "embedding", f"layer {self.embedding!r} is never called, or gives no tensor", "another layer"
            )
        return logits, z

    def look(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Logits, and z if its layer is named and the pass comes by it."""
        return in_shares(self._look, images) if self.module.training else self._look(images)

    def _look(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        if self.embedding is None:
            return self._logits(images), None
        caught: list[object] = []
        layer = self.module.get_submodule(self.embedding)
        with layer.register_forward_hook(lambda _layer, _inputs, output: caught.append(output)):
            logits = self._logits(images)
        z = first_of(caught[-1]) if caught else None
        return logits, full(z) if isinstance(z, torch.Tensor) else None

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.module.state_dict()

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        self.module.load_state_dict(state)

    @property
    def config(self) -> dict[str, Any] | None:
        """What describes a network of the hub."""
        return self.module.config if isinstance(self.module, HubClassifier) else None

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())

    def check_fits(self, domain: Domain, device: torch.device, batch_size: int = 2, embedding: bool = False) -> None:
        """Pass two images, so that a network that does not suit the data is refused before anything is written.

        The pass is in train mode, where BatchNorm refuses a batch of one; its statistics are restored. `embedding` asks
        for the embedding as well.
        """
        self.module.to(device)
        images = domain.batch(range(min(2, batch_size, len(domain))), device).images
        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        try:
            with torch.no_grad(), in_mode(self.module, training=True):
                logits = self.embed(images)[0] if embedding else self(images)
        except (RuntimeError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0][:200]
            raise UserError("network", f"cannot take images of shape {tuple(images.shape)} ({reason})") from error
        finally:
            for name, buffer in self.module.named_buffers():
                buffer.copy_(buffers[name])
        if not any(parameter.requires_grad for parameter in self.module.parameters()):
            raise UserError("network", "has no parameter that can be trained", "at least one that requires a gradient")
        size = tuple(images.shape[2:]) if domain.dense else ()
        expected = (len(images), len(domain.classes), *size)
        if tuple(getattr(logits, "shape", ())) != expected:
            got = getattr(logits, "shape", None)
            given = f"gives an output of shape {tuple(got)}" if got is not None else f"gives a {type(logits).__name__}"
            raise UserError("network", f"{given} for {len(images)} images", f"logits of shape {expected}")


def logits_of(output: Any) -> Any:
    """The logits of what a network returns: themselves, `.logits`, the value of "logits", or the first of several."""
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    return getattr(output, "logits", output[0] if isinstance(output, (tuple, list)) and output else output)


def first_of(output: Any) -> Any:
    """What a layer gives, or the first of several: attention gives more than its features."""
    several = list(output.values()) if isinstance(output, Mapping) else output
    return several[0] if isinstance(several, (tuple, list)) and several else several


@contextmanager
def in_mode(module: nn.Module, training: bool) -> Iterator[None]:
    """Inside, a network in train or in eval mode; afterwards in the one that it was in."""
    before = module.training
    module.train(training)
    try:
        yield
    finally:
        module.train(before)


def build_network(
    name: str, classes: int, image_shape: Sequence[int], config: Mapping[str, Any] | None = None
) -> NamedNetwork:
    """A network that is chosen by name, for this number of classes and images of (height, width, channels).

    `config` describes a network of the hub, as run.yaml keeps it: nothing else of the hub is needed then.
    """
    height, width, channels = image_shape
    if name.startswith(PREFIX):
        module: Any = HubClassifier(name.removeprefix(PREFIX), classes, config)
    else:
        module = find_network(name)(classes, (height, width, channels))
    return NamedNetwork(module, name=name, embedding=module.embedding, perturb=tuple(module.perturb))


def layer_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several."""
    if not isinstance(given, (str, tuple, list)):
        raise UserError("perturb", f"got {given!r:.50}", "names of layers")
    return (given,) if isinstance(given, str) else tuple(given)


def own_network(module: nn.Module, embedding: str | None = None, perturb: Sequence[str] = ()) -> NamedNetwork:
    if not isinstance(module, nn.Module):
        raise UserError("network", f"got a {type(module).__name__}", "a torch.nn.Module, or the name of a network")
    kind = type(module)
    layers = layer_names(perturb)
    return NamedNetwork(module, own=f"{kind.__module__}.{kind.__qualname__}", embedding=embedding, perturb=layers)
