"""The commands that are killed, on a benchmark of a few images of 8×8. A further command is one more line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn

from onedomain.benchmarks import BENCHMARKS, Benchmark
from onedomain.data.domain import Domain
from onedomain.networks import network
from onedomain.reporting.reproduce.columns import score
from onedomain.reporting.reproduce.declare import Row, Scale, Table
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from tests.conftest import make_tiny


@dataclass(frozen=True)
class Command:
    """A command line, what is to be there before it, and what is added to it after a kill."""

    name: str
    line: str
    needs: tuple[str, ...] = ()
    again: str = ""


TRAINED = "train --benchmark chaos --method {} --threads 1 --out {}"
MADE = {  # what commands need, in the order in which it is made
    "parent": TRAINED.format("sdg", "parent") + " --no-evaluate",
    "scored": TRAINED.format("erm", "scored"),
    "also": TRAINED.format("erm", "also") + " --seed 1",
}
COMMANDS = (
    Command("train erm", TRAINED.format("erm", "run"), again=" --resume"),
    Command("train sdg", TRAINED.format("sdg", "run"), again=" --resume"),
    Command("train uncertain-sdg", TRAINED.format("uncertain-sdg", "run"), again=" --resume"),
    Command("train gud", TRAINED.format("gud", "run"), again=" --resume"),
    Command("adapt", "adapt parent --target near --shots 2 --seeds 2 --steps 4 --out out", ("parent",), " --resume"),
    Command(
        "adapt fada",
        "adapt parent --target near --shots 2 --method fada --steps 6 --out out"
        " --set pretrain_steps=2 --set discriminator_steps=2",
        ("parent",),
        " --resume",
    ),
    Command("evaluate", "evaluate parent --threads 1", ("parent",)),
    Command("report", "report scored also --out page.html", ("scored", "also")),
    Command("figures", "figures scored also --out figures", ("scored", "also")),
    Command("corrupt", "corrupt images --kind brightness --severity all --out corrupted", ("images",)),
    Command("tune", "tune --benchmark chaos --trials 2 --jobs 1 --steps 4 --out tuned"),
    Command("reproduce", "reproduce chaos --scale few --seeds 1 --out grid --jobs 1"),
)


@network("chaos")
class ChaosNet(nn.Module):
    embedding = "pool"
    perturb = ("conv",)

    def __init__(self, classes: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(image_shape[2], 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(16, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.norm(self.conv(images)).relu()).flatten(1))


def _images(count: int, seed: int, name: str) -> Domain:
    return replace(make_tiny(count, seed, name), split="test")


def declare() -> None:
    """Let the commands know the benchmark and a table of it."""
    quick = {"steps": 6, "batch_size": 6, "checkpoint_every": 2, "log_every": 1}
    ascent = {"ascent_steps": 2}
    domains = {"domains": 2, "domain_size": 12, "warm_up": 1, "domain_every": 2, "wae_epochs": 1}
    BENCHMARKS["chaos"] = Benchmark(
        name="chaos",
        source="thirds",
        network="chaos",
        train=lambda data: make_tiny(60, 0, "thirds"),
        held_out=lambda data: _images(24, 1, "thirds"),
        calibration=lambda data: _images(24, 1, "thirds"),
        targets={"near": lambda data: _images(12, 2, "near"), "far": lambda data: _images(12, 3, "far")},
        target_train={"near": lambda data: make_tiny(12, 4, "near")},
        recipe=quick,
        settings={
            "sdg": {**ascent, **domains},
            "uncertain-sdg": {"warm_up": 1, "prediction_draws": 2},
            "gud": {**ascent, "gammas": (0.1, 1.0), "rounds": 1, "round_every": 2, "round_size": 12},
        },
    )
    columns = (score("near", "near"), score("far", "far"))
    TABLES["chaos"] = Table("chaos", "Chaos", "chaos", (Row("ERM", "erm"),), columns)
    SCALES["few"] = Scale("few", note="few steps")
