"""Segmentation: SYNTHIA, the paper's, and CamVid, sized for a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from onedomain.benchmarks.benchmark import Benchmark
from onedomain.benchmarks.cifar10c import LAYERS_ALONE
from onedomain.data.datasets import synthia
from onedomain.data.datasets.camvid import CAMVID
from onedomain.data.datasets.synthia import SYNTHIA

_SYNTHIA = {"batch_size": 8}
_CAMVID = {"batch_size": 4, "steps": 1_400, "learning_rate": 1e-3, "checkpoint_every": 200}


def _for_pixels(
    values: int, size: int, every: int, wae_epochs: int, recipe: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """What methods need beside the recipe for images of so many values each; a domain of `size` images is made `every`
    so many steps.

    Losses are means over an image's values, so that the gradient of each is the smaller the more there are: the rate of
    an ascent grows with their number, from the 1/32 of the 3,072 of Digits. (Measured on CamVid: images move by 0.12 a
    value on average, as they do on Digits.) GUD and ME-ADA have the rate that was found for SDG.
    """
    climb = {"ascent_rate": values / 3072 / 32}
    rounds = {**climb, "round_size": size, "round_every": every}
    domains = {**climb, "domain_size": size, "warm_up": every, "domain_every": every}
    v = {"auto_encoder": "segmentation", "wae_rate": 1e-4, "wae_epochs": wae_epochs}  # the rate is the paper's
    slowly = {"learning_rate": 1e-4, **recipe}  # higher rates were found on digits alone
    settings: dict[str, Mapping[str, Any]] = {
        "moved-randconv": {"steps": 10_000, **slowly},
        **dict.fromkeys(("gud", "me-ada"), rounds),
        "sdg": {**domains, **v, "augmented_batch": 3 * -(-recipe["batch_size"] // 3)},  # of each domain as many
        "uncertain-sdg": {**LAYERS_ALONE, "schedule": "constant", "steps": 6_000, **slowly, "warm_up": every},
    }
    return settings


def _synthia(condition: str) -> Benchmark:
    """The paper's third: a highway in one condition to two other places in five."""
    source = f"{synthia.SOURCE}-{condition}"
    targets = {name: partial(SYNTHIA.load, name) for name in SYNTHIA.parts if not name.startswith(f"{synthia.SOURCE}-")}
    return Benchmark(
        name=f"synthia-{condition}",
        summary=f"the paper's: 900 frames of a highway ({condition}) to New York and an old town in five conditions",
        source=source,
        network="fcn-32s",
        train=partial(SYNTHIA.of_source, "train", condition),
        held_out=partial(SYNTHIA.of_source, "test", condition),
        calibration=partial(SYNTHIA.of_source, "calibration", condition),
        targets=targets,
        metric="miou",
        # V is trained as long as in the paper, which does not say how large its batches are.
        recipe=_SYNTHIA,
        settings=_for_pixels(3 * 192 * 320, 900, every=100, wae_epochs=200, recipe=_SYNTHIA),
    )


BENCHMARKS = (
    *(_synthia(condition) for condition in synthia.SOURCE_CONDITIONS),
    Benchmark(
        name="camvid",
        summary="160 driving scenes by day to scenes at dusk: a real shift, sized for a CPU",
        source="day",
        network="fcn-small",
        train=CAMVID.source,
        held_out=partial(CAMVID.load, "day_test"),
        calibration=partial(CAMVID.source, split="calibration"),
        targets={"dusk": partial(CAMVID.load, "dusk_test")},
        metric="miou",
        # About half an hour of one CPU core for SDG and Uncertain SDG; all methods take as many steps.
        recipe=_CAMVID,
        settings=_for_pixels(3 * 180 * 240, 80, every=200, wae_epochs=20, recipe=_CAMVID),
    ),
)
