"""Digits: MNIST to other digits, the embedded one, and generated shifts of the source to choose settings by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from onedomain.benchmarks.benchmark import Benchmark, Loader
from onedomain.data.datasets import digits
from onedomain.data.datasets.catalogue import find_dataset
from onedomain.data.domain import Domain
from onedomain.data.generated import digits_lite, shifted

OTHER_SEED = 1  # of the shifts of few shots: other colours, turns and so on than of the images to score
ALL_MNIST = "few-shot-mnist-svhn"  # trains on every MNIST training image


# How long and how fast the recipes of the two systems train on 10,000 images of MNIST.
_ADAM = {"optimiser": "adam", "learning_rate": 1e-4, "schedule": "constant", "batch_size": 32, "inner_rate": 1e-4}
_DOMAINS = {**_ADAM, "domain_size": 10_000, "domain_every": 100, "ascent_rate": 1 / 32, "augmented_batch": 33}
_V = {"auto_encoder": "dense", "wae_rate": 1e-3, "wae_epochs": 20}
RECIPES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "paper": {
        "sdg": {**_DOMAINS, **_V, "steps": 10_000, "warm_up": 100},
        "uncertain-sdg": {**_ADAM, "steps": 6_000, "warm_up": 100},
    },
    "released": {
        "sdg": {**_DOMAINS, **_V, "steps": 10_001, "warm_up": 99},
        "uncertain-sdg": {**_ADAM, "steps": 6_001, "warm_up": 100},
    },
}


def published(name: str, split: str = "test") -> Loader:
    return partial(find_dataset(name).load, split)


def _changed(change: Callable[..., Domain], *how: Any, of: Loader = digits.held_out) -> Loader:
    return lambda data: change(of(data), *how)


def _generated(
    name: str,
    summary: str,
    targets: Mapping[str, Loader],
    target_train: Mapping[str, Loader] | None = None,
) -> Benchmark:
    """From the source of `digits` to changed copies of source images that training never sees."""
    return Benchmark(
        name=name,
        summary=f"the source of `digits` to {summary}",
        source="mnist",
        network="lenet",
        train=digits.source,
        held_out=digits.held_out,
        calibration=digits.held_out,
        targets=targets,
        target_train=target_train or {},
        recipes=RECIPES,
        trained_on_by=(ALL_MNIST,),
        of_source=True,
    )


def _lite(name: str, split: str = "test") -> Loader:
    return lambda data: digits_lite.target(name, split)


BENCHMARKS = (
    Benchmark(
        name="digits-lite",
        summary="4,000 MNIST images to four unseen digit domains; embedded, nothing to download",
        source="mnist",
        network="lenet",
        train=lambda data: digits_lite.source()[0],
        held_out=lambda data: digits_lite.source()[1],
        calibration=lambda data: digits_lite.source()[1],  # there are no others: its source row flags 5% by design
        targets={name: _lite(name) for name in digits_lite.TARGETS},
        target_train={name: _lite(name, "train") for name in digits_lite.TRAINING},
        # A short run on a small source: the rate is higher than the paper's, chosen on the held-out source.
        trained_on_by=("digits", ALL_MNIST),
        recipe={"steps": 600, "learning_rate": 1e-3, "checkpoint_every": 200},
        settings={
            # Smaller domains, made earlier, so that the demo takes minutes.
            "sdg": {"warm_up": 60, "domain_every": 60, "domain_size": 600, "wae_epochs": 5},
            "uncertain-sdg": {"steps": 300, "warm_up": 60, "prediction_draws": 3},
        },
    ),
    Benchmark(
        name="digits",
        summary="the paper's: the first 10,000 MNIST images to SVHN, MNIST-M, SYN and USPS",
        source="mnist",
        network="lenet",
        train=digits.source,
        held_out=published("mnist"),
        calibration=digits.held_out,
        targets={name: published(name) for name in ("svhn", "mnist-m", "syn", "usps")},
        target_train={name: published(name, "train") for name in ("svhn", "mnist-m", "syn", "usps")},
        recipes=RECIPES,
    ),
    _generated(
        "digits-shifted",
        "shifted copies of held-out source images: to choose settings by",
        {name: _changed(shifted.shifted, name) for name in shifted.SHIFTS},
        {name: _changed(shifted.shifted, name, OTHER_SEED, of=digits.for_shots) for name in shifted.SHIFTS},
    ),
    _generated(
        "digits-composed",
        "held-out source images under two or three shifts at once: to choose settings by, farther away",
        {name: _changed(shifted.shifted, name) for name in shifted.COMPOSED},
        {name: _changed(shifted.shifted, name, OTHER_SEED, of=digits.for_shots) for name in shifted.COMPOSED},
    ),
    _generated(
        "digits-graded",
        "held-out source images, corrupted more and more: does uncertainty grow?",
        {
            f"{name}-{severity}": _changed(shifted.graded, name, severity)
            for name in shifted.SHIFTS
            for severity in shifted.SEVERITIES
        },
    ),
)
