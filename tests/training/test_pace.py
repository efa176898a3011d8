from __future__ import annotations

import pytest
import torch

import onedomain as od
from onedomain.networks import NamedNetwork
from onedomain.training import pace
from onedomain.training.pace import Pace, seconds_of_a_plain_step, tell
from tests.conftest import TinyNet, set_up

DOMAINS = {"domains": 2, "domain_size": 32, "ascent_steps": 10, "beta": 0.0, "steps": 100, "warm_up": 20}


@pytest.fixture
def sdg(tiny):
    return set_up(od.SDG(**DOMAINS), NamedNetwork(TinyNet(), embedding="pool"), tiny)


def test_before_a_method_begins_the_making_of_its_domains_and_its_slower_steps_are_counted(sdg):
    known = Pace(sdg, plain=1.0)
    making = sdg.preparation_cost(60)
    assert known.left(0) == pytest.approx(20 + 80 * sdg.cost + making)
    known.stepped(1, 2.0)
    assert known.left(1) == pytest.approx(2 * 19 + 80 * sdg.cost + making)


def test_what_was_measured_counts_for_what_is_left(sdg, tiny):
    known = Pace(sdg, plain=1.0)
    known.prepared(50.0)
    sdg.augmentation.domains.append(tiny)  # the first of two is made
    known.stepped(21, 3.0)
    assert known.left(21) == pytest.approx(79 * 3.0 + 50.0)
    known.prepared(20.0)
    assert known.left(21) == pytest.approx(79 * 3.0 + 30.0)
    sdg.augmentation.domains.append(tiny)
    assert known.left(21) == pytest.approx(79 * 3.0)


def test_a_plain_step_is_timed_and_leaves_no_trace(tiny):
    torch.manual_seed(0)
    method = set_up(od.ERM(batch_size=4), NamedNetwork(TinyNet()), tiny)
    before = {name: tensor.clone() for name, tensor in method.network.state_dict().items()}
    assert seconds_of_a_plain_step(method) > 0
    assert all(torch.equal(before[name], tensor) for name, tensor in method.network.state_dict().items())
    assert all(parameter.grad is None for parameter in method.network.module.parameters())


def test_long_trainings_are_told_beforehand_and_those_too_short_for_their_method(sdg, tiny, capsys):
    tell(sdg, 0, 30.0)
    assert capsys.readouterr().err == ""
    tell(sdg, 0, 90.0)
    assert capsys.readouterr().err == "about 1:30 for 100 steps with images of 8×8 on cpu\n"
    tell(sdg, 0, 7200.0)
    assert capsys.readouterr().err.startswith("note: about 2:00:00 for 100 steps")
    short = set_up(od.SDG(**{**DOMAINS, "steps": 20}), NamedNetwork(TinyNet(), embedding="pool"), tiny)
    tell(short, 0, 1.0)
    assert capsys.readouterr().err == "note: sdg begins after 20 steps: 20 are plain training\n"


def test_the_time_that_is_left_has_the_making_of_domains_in_it(tiny, capsys, monkeypatch):
    monkeypatch.setattr(pace, "WORTH_TELLING", 0.0)
    od.fit(
        od.SDG(**{**DOMAINS, "warm_up": 1, "domain_every": 1, "steps": 3}), tiny, network=TinyNet(), embedding="pool"
    )
    assert "for 3 steps with images of 8×8 on cpu" in capsys.readouterr().err
