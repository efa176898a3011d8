"""Networks of the same make as a run's: one that answers like it, or one that has learned nothing."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from onedomain.errors import UserError
from onedomain.methods.base import Method
from onedomain.networks import NamedNetwork, build_network
from onedomain.training.begin import set_up_to_answer

if TYPE_CHECKING:
    from onedomain.training.run import Run


def answering_as(run: Run, network: NamedNetwork, folder: Path | None) -> Method:
    """The run's method around another network of the same make: φ, if it has one, stays as it was learned."""
    method = type(run.method)(**run.method.settings.model_dump())
    set_up_to_answer(method, network, run.manifest, run.method.device, folder)
    if method.auxiliary is not None and run.method.auxiliary is not None:
        method.auxiliary.load_state_dict(run.method.auxiliary.state_dict())
    return method


def afresh(run: Run) -> NamedNetwork:
    """A network like the run's that has learned nothing."""
    if run.network.name is not None:
        shape = run.manifest.source.image_shape
        return replace(
            run.network, module=build_network(run.network.name, len(run.classes), shape, run.network.config).module
        )
    module = copy.deepcopy(run.network.module)
    for name, layer in module.named_modules():
        if callable(reset := getattr(layer, "reset_parameters", None)):
            reset()
        elif next(layer.parameters(recurse=False), None) is not None:
            given = f"layer {name or type(layer).__name__!r} of your own network cannot be started afresh"
            raise UserError("network", given, "layers with reset_parameters(), as torch's have")
    return replace(run.network, module=module)


def weights_fingerprint(module: nn.Module) -> str:
    """A short SHA-256 over all weights and buffers, by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]
