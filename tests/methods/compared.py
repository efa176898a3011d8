"""The methods that SDG is compared with, for tests: quick settings, a whole run, and a method just before a step."""

from __future__ import annotations

import torch

import onedomain as od
from onedomain.methods import method_class, method_names
from onedomain.networks import own_network
from tests.conftest import TinyNet, set_up

QUICK = {"batch_size": 12, "learning_rate": 1e-2, "log_every": 5, "checkpoint_every": 2}
# Every method that has no file of tests of its own, also one that is new, and what makes some of them quick.
NAMES = [name for name in method_names() if name not in ("erm", "sdg", "uncertain-sdg")]
SETTINGS = {
    "ccsa": {},
    "d-sne": {},
    "jigen": {"permutations": 5},
    "gud": {"rounds": 2, "round_every": 3, "round_size": 30, "ascent_steps": 2},
    "me-ada": {"rounds": 2, "round_every": 3, "round_size": 30, "ascent_steps": 2},
    "randconv": {},
    "pro-randconv": {"repeats": 3},
    "augmix": {},
    "meta-randconv": {"repeats": 3},
    "moved-randconv": {"repeats": 3},
}


def fit(name, source, steps, resume=False, out=None, **settings):
    torch.manual_seed(3)
    method = method_class(name)(**{**QUICK, **SETTINGS.get(name, {}), **settings})
    given = {"network": TinyNet(), "embedding": "pool", "steps": steps, "progress": False}
    return od.fit(method, source, out=out, resume=resume, **given)


def begun(name, source, network=None, **settings):
    torch.manual_seed(0)
    method = method_class(name)(**{**QUICK, **SETTINGS.get(name, {}), **settings})
    return set_up(method, network or own_network(TinyNet(), "pool"), source)
