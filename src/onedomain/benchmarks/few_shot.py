"""Few-shot adaptation between MNIST, USPS and SVHN: the tasks of the paper's Table 6."""

from __future__ import annotations

from onedomain.benchmarks.benchmark import Benchmark
from onedomain.benchmarks.digits import published

FEW_SHOT_DIGITS = "few-shot-digits"


def _few_shot(source: str, target: str) -> Benchmark:
    """A task of the paper's Table 6: all training images of the source, a few of the target's."""
    return Benchmark(
        name=f"few-shot-{source}-{target}",
        summary=f"{FEW_SHOT_DIGITS}, {source[0].upper()}→{target[0].upper()}: all training images of {source} to "
        f"{target}; then `adapt --target {target} --shots 7`",
        source=source,
        network="lenet",
        train=published(source, "train"),
        held_out=published(source),
        calibration=published(source),  # the paper trains on all others: the source row flags 5% by design
        targets={target: published(target)},
        target_train={target: published(target, "train")},
        family=FEW_SHOT_DIGITS,
    )


BENCHMARKS = (
    _few_shot("usps", "mnist"),
    _few_shot("mnist", "svhn"),
    _few_shot("svhn", "mnist"),
)
