"""Train on one domain, hold up on the ones you have never seen, and know when you don't."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onedomain._version import __version__ as __version__
from onedomain.errors import OnedomainError as OnedomainError
from onedomain.errors import TrainingDiverged as TrainingDiverged
from onedomain.errors import UserError as UserError

if TYPE_CHECKING:
    from onedomain.benchmarks import Benchmark as Benchmark
    from onedomain.data.domain import Domain as Domain
    from onedomain.data.frames import frame_folder as frame_folder
    from onedomain.data.image_folder import image_folder as image_folder
    from onedomain.evaluation.scores import Evaluation as Evaluation
    from onedomain.evaluation.scores import Scores as Scores
    from onedomain.methods import method_names as method_names
    from onedomain.methods.augmix import AugMix as AugMix
    from onedomain.methods.ccsa import CCSA as CCSA
    from onedomain.methods.d_sne import DSNE as DSNE
    from onedomain.methods.erm import ERM as ERM
    from onedomain.methods.gud import GUD as GUD
    from onedomain.methods.jigen import JiGen as JiGen
    from onedomain.methods.me_ada import MEADA as MEADA
    from onedomain.methods.meta_randconv import MetaRandConv as MetaRandConv
    from onedomain.methods.moved_randconv import MovedRandConv as MovedRandConv
    from onedomain.methods.pro_randconv import ProRandConv as ProRandConv
    from onedomain.methods.randconv import RandConv as RandConv
    from onedomain.methods.sdg import SDG as SDG
    from onedomain.methods.uncertain_sdg import UncertainSDG as UncertainSDG
    from onedomain.training.adapted import Adapted as Adapted
    from onedomain.training.fit import fit as fit
    from onedomain.training.fit import load as load
    from onedomain.training.predictions import Predictions as Predictions
    from onedomain.training.run import Run as Run

# Imported when first asked for, so that `onedomain --help` does not wait for torch.
_WHERE = {
    "Adapted": "training.adapted",
    "Benchmark": "benchmarks",
    "Domain": "data.domain",
    "Evaluation": "evaluation.scores",
    "Predictions": "training.predictions",
    "Run": "training.run",
    "Scores": "evaluation.scores",
    "fit": "benchmarks.protocol.known",
    "frame_folder": "data.frames",
    "image_folder": "data.image_folder",
    "load": "training.fit",
    "method_names": "methods",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"onedomain.{_WHERE[name]}"), name)
    from onedomain.methods import method_class, method_names

    # Every method's class is here under its own name: the file uncertain_sdg.py holds od.UncertainSDG.
    for method in method_names():
        if method.replace("-", "") == name.lower() and method_class(method).__name__ == name:
            return method_class(method)
    raise AttributeError(f"module 'onedomain' has no attribute {name!r}")


def __dir__() -> list[str]:
    from onedomain.methods import METHODS

    classes = (kind.__name__ for kind in (*METHODS.own(), OnedomainError, TrainingDiverged, UserError))
    return sorted([*_WHERE, *classes, "__version__"])
