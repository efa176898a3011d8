from __future__ import annotations

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

import onedomain as od
from onedomain.errors import UserError
from onedomain.methods import method_class
from onedomain.networks.weights import load_weights, save_weights
from onedomain.runs.layout import CHECKPOINT
from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from tests.conftest import TinyNet


def test_nested_state_comes_back_as_it_was(tmp_path):
    layout = torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last)
    state = {
        "step": 3,
        "state": {0: {"moment": layout, "count": torch.tensor(2.0)}},
        "groups": [{"lr": 0.1, "x": None}],
    }
    save_checkpoint(tmp_path / "c.pt", state)
    back = load_checkpoint(tmp_path / "c.pt")
    assert back["step"] == 3
    assert back["groups"] == [{"lr": 0.1, "x": None}]
    assert torch.equal(back["state"][0]["moment"], layout)
    assert back["state"][0]["moment"].stride() == layout.stride()
    assert back["state"][0]["count"].shape == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
        max_leaves=10,
    )
)
def test_any_json_value_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("state") / "c.pt"
    save_checkpoint(path, {"value": value})
    assert load_checkpoint(path) == {"value": value}


def test_tensors_that_share_memory_are_stored(tmp_path):
    weight = torch.randn(3, 3)
    save_weights(tmp_path / "w", {"a": weight, "tied": weight})
    back = load_weights(tmp_path / "w")
    assert torch.equal(back["tied"], weight)
    assert torch.equal(back["a"], weight)


def test_what_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="not object"):
        save_checkpoint(tmp_path / "c.pt", {"x": object()})
    assert not list(tmp_path.iterdir())


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("writer", [lambda bomb: pickle.dumps(bomb), None])
def test_a_pickle_with_code_is_refused_and_never_run(tmp_path, writer):
    path, mark = tmp_path / "c.pt", tmp_path / "executed"
    if writer:
        path.write_bytes(writer(Bomb(str(mark))))
    else:
        torch.save({"state": Bomb(str(mark))}, path)
    for load in (load_checkpoint, load_weights):
        with pytest.raises(UserError, match=r"c\.pt"):
            load(path)
    assert not mark.exists()


@pytest.mark.parametrize("kept", [0, 7, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(tmp_path, kept):
    path = tmp_path / "c.pt"
    save_checkpoint(path, {"w": torch.randn(50, 50)})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        load_checkpoint(path)


@pytest.mark.parametrize("structure", ["[1, 2]", "5", "null", '{"dict": [[[], 1]]}', "[" * 5000, '{"__tensor__": "9"}'])
def test_another_structure_is_refused(tmp_path, structure):
    path = tmp_path / "c.pt"
    path.write_bytes(save({"0": torch.zeros(1)}, metadata={"structure": structure}))
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        load_checkpoint(path)


def test_weights_are_not_a_checkpoint(tmp_path):
    save_weights(tmp_path / "w", {"a": torch.zeros(1)})
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        load_checkpoint(tmp_path / "w")


@pytest.mark.parametrize("method", ["erm", "sdg", "gud", "uncertain-sdg"])
def test_a_checkpoint_with_a_short_moment_is_refused(tmp_path, tiny, method):
    """A fused optimiser would write beyond its end."""
    settings = {"sdg": {"domains": 1, "warm_up": 1, "domain_every": 1, "domain_size": 4, "wae_epochs": 1}}
    kind = method_class(method)(steps=2, batch_size=4, checkpoint_every=1, **settings.get(method, {}))

    def fit(**resume):
        layers = {"embedding": "pool", "perturb": ["conv"]}
        od.fit(kind, tiny, network=TinyNet(), **layers, out=tmp_path / "run", progress=False, **resume)

    fit()
    path = tmp_path / "run" / CHECKPOINT
    state = {**load_checkpoint(path), "step": 1}
    assert _shorten(state)
    save_checkpoint(path, state)
    with pytest.raises(UserError, match="is no checkpoint of this run .*of shape"):
        fit(resume=True)


def _shorten(value):
    """Cut the first moment that there is to one number."""
    if isinstance(value, dict) and "exp_avg" in value:
        value["exp_avg"] = torch.zeros(1)
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_shorten(each) for each in inside)


@pytest.mark.parametrize(
    "change", [{"step": -1}, {"step": 99}, {"step": "1"}, {"step": True}, {"seconds": float("nan")}, {"seconds": -1.0}]
)
def test_a_checkpoint_of_an_impossible_moment_is_refused(tmp_path, tiny, change):
    def fit(**resume):
        od.fit(od.ERM(steps=2, batch_size=4), tiny, network=TinyNet(), out=tmp_path / "run", progress=False, **resume)

    fit()
    path = tmp_path / "run" / CHECKPOINT
    save_checkpoint(path, {**load_checkpoint(path), **change})
    with pytest.raises(UserError, match="is no checkpoint of this run"):
        fit(resume=True)
