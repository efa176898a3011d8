"""Train on one domain, hold up on the ones you have never seen, and know when you don't."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onedomain._version import __version__
from onedomain.errors import OnedomainError, TrainingDiverged, UserError

if TYPE_CHECKING:
    from onedomain.benchmarks import Benchmark
    from onedomain.data.domain import Domain
    from onedomain.data.frames import frame_folder
    from onedomain.data.own import image_folder
    from onedomain.evaluation.scores import Evaluation, Scores
    from onedomain.methods import method_names
    from onedomain.methods.augmix import AugMix
    from onedomain.methods.ccsa import CCSA
    from onedomain.methods.d_sne import DSNE
    from onedomain.methods.erm import ERM
    from onedomain.methods.gud import GUD
    from onedomain.methods.jigen import JiGen
    from onedomain.methods.me_ada import MEADA
    from onedomain.methods.meta_randconv import MetaRandConv
    from onedomain.methods.moved_randconv import MovedRandConv
    from onedomain.methods.pro_randconv import ProRandConv
    from onedomain.methods.randconv import RandConv
    from onedomain.methods.sdg import SDG
    from onedomain.methods.uncertain_sdg import UncertainSDG
    from onedomain.training.adapted import Adapted
    from onedomain.training.fit import fit, load
    from onedomain.training.run import Predictions, Run

# Imported when first asked for, so that `onedomain --help` does not wait for torch.
_WHERE = {
    "Adapted": "onedomain.training.adapted",
    "Benchmark": "onedomain.benchmarks",
    "Domain": "onedomain.data.domain",
    "frame_folder": "onedomain.data.frames",
    "image_folder": "onedomain.data.own",
    "Evaluation": "onedomain.evaluation.scores",
    "Scores": "onedomain.evaluation.scores",
    "Predictions": "onedomain.training.run",
    "Run": "onedomain.training.run",
    "fit": "onedomain.training.fit",
    "load": "onedomain.training.fit",
    "method_names": "onedomain.methods",
}

__all__ = [
    "CCSA",
    "DSNE",
    "ERM",
    "GUD",
    "MEADA",
    "SDG",
    "Adapted",
    "AugMix",
    "Benchmark",
    "Domain",
    "Evaluation",
    "JiGen",
    "MetaRandConv",
    "MovedRandConv",
    "OnedomainError",
    "Predictions",
    "ProRandConv",
    "RandConv",
    "Run",
    "Scores",
    "TrainingDiverged",
    "UncertainSDG",
    "UserError",
    "__version__",
    "fit",
    "frame_folder",
    "image_folder",
    "load",
    "method_names",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    from onedomain.methods import method_class, method_names

    # Every method's class is here under its own name: the file uncertain_sdg.py holds od.UncertainSDG.
    for method in method_names():
        if method.replace("-", "") == name.lower() and method_class(method).__name__ == name:
            return method_class(method)
    raise AttributeError(f"module 'onedomain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
