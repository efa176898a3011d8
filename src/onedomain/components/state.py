"""What a checkpoint holds of a training, and what of it may be put back.

A checkpoint may be a stranger's, or damaged: every tensor is held against the one that it replaces before anything is
loaded. Fused optimisers walk over raw memory, and a moment of another shape than its weight would be read and written
beyond its end.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        _check_tensors(part.state_dict(), state, name)
    elif isinstance(part, torch.optim.Optimizer):
        _check_optimiser(part, state, name)
    elif hasattr(part, "check_state"):
        part.check_state(state, name)
    elif part is not None and type(state) is not type(part):
        raise ValueError(f"{name} is a {type(state).__name__}, not a {type(part).__name__}")


def _check_tensors(own: Mapping[str, Tensor], state: Any, name: str) -> None:
    """Names, shapes and types as they are here; finite numbers, unless a mask here is not finite either."""
    given = _mapping(state, name)
    for odd in sorted(map(str, own.keys() ^ given.keys())):
        raise ValueError(f"{name}.{odd} is {'missing' if odd in own else 'not known'}")
    for each, tensor in own.items():
        _check_tensor(tensor.shape, tensor.dtype, given[each], f"{name}.{each}", bool(tensor.isfinite().all()))


def _check_moments(parameters: list[Tensor], state: Any, name: str) -> None:
    """What an optimiser remembers of each parameter: a tensor of its shape, or a single number such as the step."""
    for number, values in _mapping(state, name).items():
        place = int(number)
        if not 0 <= place < len(parameters):
            raise ValueError(f"{name} has moments of parameter {place}, and there are {len(parameters)}")
        own = parameters[place]
        for moment, value in _mapping(values, f"{name}.{place}").items():
            if value is None:
                continue  # SGD before its first step
            wanted = (torch.Size(), torch.float32) if moment == "step" else (own.shape, own.dtype)
            _check_tensor(*wanted, value, f"{name}.{moment}")
            if moment in ("step", "exp_avg_sq") and value.numel() and float(value.min()) < 0:
                raise ValueError(f"{name}.{moment} has a number below 0")


def _check_optimiser(optimiser: torch.optim.Optimizer, state: Any, name: str) -> None:
    own = optimiser.state_dict()["param_groups"]
    given = _mapping(state, name)
    groups = given.get("param_groups")
    if not isinstance(groups, list) or len(groups) != len(own):
        raise ValueError(f"{name} is not of {len(own)} groups of parameters")
    for here, there in zip(own, groups, strict=True):
        rate = _mapping(there, f"{name}'s group").get("lr")
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < float("inf"):
            raise ValueError(f"{name} has the rate {rate!r}")
        if _as_json({**here, "lr": rate}) != _as_json(there):
            raise ValueError(f"{name} has other options than here")
    _check_moments([each for group in optimiser.param_groups for each in group["params"]], given.get("state"), name)


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
