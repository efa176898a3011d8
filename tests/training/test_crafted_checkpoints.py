"""A checkpoint is a stranger's: each of its parts is changed in every way, and none of that gets into a training."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import onedomain as od
from onedomain.errors import UserError
from onedomain.methods import method_class
from onedomain.runs.layout import CHECKPOINT
from onedomain.training import loop
from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from onedomain.training.loop import Keeper
from tests.adapting import make_dim
from tests.conftest import TinyNet, make_tiny

MAKING = {"domains": 2, "warm_up": 1, "domain_every": 1, "domain_size": 120, "wae_epochs": 2, "ascent_steps": 1}
ROUNDS = {"rounds": 1, "round_every": 1, "round_size": 8, "ascent_steps": 1, "gammas": (0.1, 1.0)}
KINDS: dict[str, dict[str, Any]] = {
    "erm": {},
    "sdg": {**MAKING, "retrain": "on"},
    "gud": ROUNDS,
    "uncertain-sdg": {"warm_up": 1},
}


class _Enough(BaseException):
    pass


def changes(value: Any) -> Iterator[Any]:
    """Every other thing that could stand in the place of a part."""
    yield from ([], {}, "text", [[value]], torch.zeros(2, 7, 1))
    if isinstance(value, Tensor):
        yield from (
            0.5,
            None,
            value[..., None],
            value.flatten()[:0],
            torch.zeros(1, 1, 1, 1, 1),
            value.to(torch.complex64),
        )
        yield value.to(torch.float64 if value.dtype != torch.float64 else torch.float16)
        if value.dim():
            yield torch.cat([value, value])
        if value.is_floating_point():
            yield from (torch.full_like(value, number) for number in (torch.nan, torch.inf))
    elif isinstance(value, dict):
        yield {**value, "a part too many": torch.zeros(1)}
        yield from ({name: part for name, part in value.items() if name != left_out} for left_out in value)
    elif isinstance(value, list):
        yield from ([*value, 1], value[:-1])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (-1, 10**400, -(10**400), float("nan"), float("-inf"), 10**9 + 0.5)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every part of a state, and where it is."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))


def put(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    whole = copy.copy(state)
    whole[path[0]] = put(state[path[0]], path[1:], value)
    return whole


def harmless(path: tuple[Any, ...], before: Any, now: Any) -> bool:
    """What is another state, and as good: nothing is in the making; another rate; moments of fewer parameters."""
    if path[-2:] == ("augmentation", "making") or path[-1:] == ("wae",):
        return now is None
    if path[-1:] == ("lr",) or path == ("seconds",):
        return isinstance(now, (int, float)) and 0 <= now < 1e10
    moments = path[-1:] == ("state",) or str(path[-1:]).startswith("('adam.")
    if moments and isinstance(now, dict):
        return now.keys() <= before.keys()
    return False


def restores(keeper: Keeper, state: Any, monkeypatch: Any) -> bool:
    monkeypatch.setattr(loop, "load_checkpoint", lambda path, device: state)
    if isinstance(keeper.method, od.SDG):
        keeper.method.wae, keeper.method.wae_before = None, 0  # as in a new process
    try:
        keeper.restore()
    except UserError:
        return False
    return True


@pytest.mark.parametrize("name", [*KINDS, "fada"])
def test_no_changed_part_is_taken(tmp_path, tiny, monkeypatch, name):
    """Stopped in the midst: a domain and an auto-encoder are in the making. Every part, in the form it is loaded in."""
    keepers: list[Keeper] = []
    save = Keeper.save

    def stop(keeper, step):
        save(keeper, step)
        keepers.append(keeper)
        making = name == "sdg" and (keeper.method.wae is None or keeper.method.wae_before < 2)
        if step >= 2 and not making:
            raise _Enough

    monkeypatch.setattr(Keeper, "save", stop)
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_SAVED_PARTS", -1.0)
    layers = {"embedding": "pool", "perturb": ["conv"]}
    quick = {"steps": 4, "batch_size": 6, "checkpoint_every": 1}
    folder = tmp_path / "run"
    with contextlib.suppress(_Enough):
        if name in KINDS:
            kind = method_class(name)(**quick, **KINDS[name])
            od.fit(kind, tiny, network=TinyNet(), **layers, out=folder, progress=False)
        else:
            _adapt(name, folder, monkeypatch, save, stop)
    state = load_checkpoint(folder / CHECKPOINT)
    assert restores(keepers[-1], copy.deepcopy(state), monkeypatch)
    taken, tried = [], 0
    common = {("method", part) for part in ("network", "optimiser", "optimisers")} if name != "erm" else set()
    for path, part in places(state):
        few = 7 if name == "sdg" and isinstance(part, Tensor) else 1  # an auto-encoder is made at each try
        for changed in list(changes(part))[::few]:
            if path and path[:2] not in common and not harmless(path, part, changed):
                tried += 1
                if restores(keepers[-1], put(state, path, changed), monkeypatch):
                    taken.append((path, str(changed)[:60]))
    assert not taken, taken[:20]
    assert tried > 50


def _adapt(name: str, folder: Any, monkeypatch: Any, save: Any, stop: Any) -> None:
    monkeypatch.setattr(Keeper, "save", save)
    run = od.fit(od.ERM(steps=2), make_tiny(), network=TinyNet(), embedding="pool", progress=False)
    monkeypatch.setattr(Keeper, "save", stop)
    fewer = {"fada": {"pretrain_steps": 1, "discriminator_steps": 1}}.get(name, {})
    from onedomain.methods.adapt import adaptation_class

    kind = adaptation_class(name)(steps=6, checkpoint_every=1, **fewer)
    run.adapt(make_dim(), 2, method=kind, source=make_tiny(), out=folder, progress=False)


def test_a_tensor_is_taken_once(tmp_path):
    """A small file that names one tensor a million times would fill the memory."""
    import json

    from safetensors.torch import save

    tensor = {"__tensor__": "0", "channels_last": True}
    structure = json.dumps({"dict": [["all", [tensor, tensor]]]})
    (tmp_path / "c.pt").write_bytes(save({"0": torch.zeros(1, 2, 3, 4)}, metadata={"structure": structure}))
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        load_checkpoint(tmp_path / "c.pt")


def test_a_tensor_without_a_place_is_refused(tmp_path):
    from safetensors.torch import save

    content = save({"0": torch.zeros(1), "1": torch.zeros(9)}, metadata={"structure": '{"dict": []}'})
    (tmp_path / "c.pt").write_bytes(content)
    with pytest.raises(UserError, match="has no place"):
        load_checkpoint(tmp_path / "c.pt")


def test_a_checkpoint_that_is_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "c.pt")
    with pytest.raises(UserError, match="is no file"):
        load_checkpoint(tmp_path / "c.pt")


def test_a_crafted_file_ends_a_resume_in_one_line(tmp_path, tiny):
    """By way of a file, as a user would meet it."""

    def fit(**resume):
        od.fit(od.ERM(steps=2, batch_size=4), tiny, network=TinyNet(), out=tmp_path / "run", progress=False, **resume)

    fit()
    path = tmp_path / "run" / CHECKPOINT
    state = load_checkpoint(path)
    state["method"]["optimiser"]["state"][0].pop("exp_avg_sq")
    save_checkpoint(path, {**state, "step": 1})
    with pytest.raises(UserError, match="exp_avg_sq is missing"):
        fit(resume=True)
