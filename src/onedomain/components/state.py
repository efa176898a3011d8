"""What a checkpoint holds of a training, and what of it may be put back.

A checkpoint may be a stranger's, or damaged: every tensor is held against the one that it replaces before anything is
loaded. Fused optimisers walk over raw memory, and a moment of another shape than its weight would be read and written
beyond its end.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from onedomain.networks import NamedNetwork


class Stateful:
    """What is trained. `state` names the attributes that a checkpoint keeps, in the order in which they are restored:
    networks, optimisers, numbers, lists of them, and others of this kind.
    """

    state: ClassVar[tuple[str, ...]]

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on exactly: tensors and JSON values, nested freely."""
        return {name: saved(getattr(self, name)) for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state, if all of it fits."""
        check_names(self.state, state, "it")
        for name in self.state:
            check(getattr(self, name), state[name], name)
        for name in self.state:
            setattr(self, name, restored(getattr(self, name), state[name]))


def saved(part: Any) -> Any:
    if isinstance(part, list):
        return [saved(each) for each in part]
    return part.state_dict() if hasattr(part, "state_dict") else part


def restored(part: Any, state: Any) -> Any:
    if isinstance(part, list):
        return [restored(*pair) for pair in zip(part, state, strict=True)]
    if not hasattr(part, "load_state_dict"):
        return state
    part.load_state_dict(state)
    return part


def check(part: Any, state: Any, name: str) -> None:
    """Raise a ValueError that says what of a state does not fit `part`; one with a `check_state` says it itself."""
    if isinstance(part, list):
        if not isinstance(state, list) or len(state) != len(part):
            raise ValueError(f"{name} is no list of {len(part)}")
        for place, pair in enumerate(zip(part, state, strict=True)):
            check(*pair, f"{name}.{place}")
    elif isinstance(part, (nn.Module, NamedNetwork)):
        check_tensors(part.state_dict(), state, name)
    elif isinstance(part, torch.optim.Optimizer):
        _check_optimiser(part, state, name)
    elif hasattr(part, "check_state"):
        part.check_state(state, name)
    elif isinstance(part, Tensor):
        _check_tensor(part.shape, part.dtype, state, name, bool(part.isfinite().all()))
    elif not (isinstance(state, (int, float, type(None))) if part is None else type(state) is type(part)):
        raise ValueError(f"{name} is a {type(state).__name__}, not a {type(part).__name__}")
    elif isinstance(part, float) and math.isfinite(part) and not math.isfinite(state):
        raise ValueError(f"{name} is {state}")


def check_tensors(own: Mapping[str, Tensor], state: Any, name: str) -> None:
    """Names, shapes and types as they are here; finite numbers, unless a mask here is not finite either."""
    given = check_names(own, state, name)
    for each, tensor in own.items():
        _check_tensor(tensor.shape, tensor.dtype, given[each], f"{name}.{each}", bool(tensor.isfinite().all()))


def check_names(own: Collection[str], state: Any, name: str) -> Mapping[str, Any]:
    """The state, if it has these parts and no others."""
    given = _mapping(state, name)
    for odd in sorted(map(str, set(own) ^ given.keys())):
        raise ValueError(f"{name}.{odd} is {'missing' if odd in own else 'not known'}")
    return given


def _check_moments(optimiser: torch.optim.Optimizer, state: Any, name: str) -> None:
    """What an optimiser remembers of each parameter: a tensor of its shape, or a single number such as the step."""
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    remembered = _remembered(optimiser)
    for place, values in _mapping(state, name).items():
        if type(place) is not int or not 0 <= place < len(parameters):
            raise ValueError(f"{name} has moments of parameter {place!r:.20}, and there are {len(parameters)}")
        given = {moment: value for moment, value in _mapping(values, f"{name}.{place}").items() if value is not None}
        for odd in sorted(map(str, remembered.keys() ^ given.keys())):
            if odd in given or odd != "momentum_buffer":  # which SGD has from its first step on
                raise ValueError(f"{name}.{odd} is {'missing' if odd in remembered else 'not known'}")
        for moment, value in given.items():
            usual, own = remembered[moment], parameters[place]
            like = own if usual.dim() else usual
            _check_tensor(like.shape, like.dtype, value, f"{name}.{moment}")
            if moment in ("step", "exp_avg_sq") and value.numel() and float(value.min()) < 0:
                raise ValueError(f"{name}.{moment} has a number below 0")


def _remembered(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What it remembers of a parameter after a step: found out on another parameter."""
    probe = nn.Parameter(torch.zeros(1))
    probe.grad = torch.zeros(1)
    other = copy.copy(optimiser)
    other.state = defaultdict(dict)
    other.param_groups = [{**optimiser.param_groups[0], "params": [probe]}]
    other.step()
    return {moment: value for moment, value in other.state[probe].items() if value is not None}


def _check_optimiser(optimiser: torch.optim.Optimizer, state: Any, name: str) -> None:
    own = optimiser.state_dict()["param_groups"]
    given = check_names(optimiser.state_dict(), state, name)
    groups = given["param_groups"]
    if not isinstance(groups, list) or len(groups) != len(own):
        raise ValueError(f"{name} is not of {len(own)} groups of parameters")
    for here, there in zip(own, groups, strict=True):
        rate = _mapping(there, f"{name}'s group").get("lr")
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= float(rate) < math.inf:
            raise ValueError(f"{name} has the rate {rate!r}")
        if _as_json({**here, "lr": rate}) != _as_json(there):
            raise ValueError(f"{name} has other options than here")
    _check_moments(optimiser, given["state"], name)


def _as_json(group: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: Adam's betas come back as a list."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in group.items()}


def _check_tensor(shape: torch.Size, kind: torch.dtype, given: Any, name: str, finite: bool = True) -> None:
    if not isinstance(given, Tensor):
        raise ValueError(f"{name} is no tensor")
    if given.shape != shape or given.dtype != kind:
        found = f"{given.dtype} of shape {tuple(given.shape)}".removeprefix("torch.")
        raise ValueError(f"{name} is {found}, not {str(kind).removeprefix('torch.')} of shape {tuple(shape)}")
    if finite and not bool(given.isfinite().all()):
        raise ValueError(f"{name} has a number that is not finite")


def _mapping(value: Any, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is no mapping")
    return value
