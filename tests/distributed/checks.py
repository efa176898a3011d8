"""What one process and several must find alike: `python -m tests.distributed.checks FILE`, by each of them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import onedomain as od
from onedomain.components.meta import batch_losses, meta_gradient
from onedomain.data.domain import Batch
from onedomain.methods import method_class, method_names
from onedomain.methods.base import Setup
from onedomain.methods.erm import ERM
from onedomain.methods.sdg import SDG
from onedomain.networks import own_network
from onedomain.networks.distributed import average, averaged, in_shares
from tests.conftest import TinyNet, make_tiny, set_up
from tests.golden.test_losses import COMMON, SOON
from tests.methods.uncertain import SmoothNet, begun


def collectives() -> dict[str, Tensor]:
    """Values, gradients, and gradients of gradients, of 7 samples: shares that are not equal."""
    torch.manual_seed(0)
    x = torch.randn(7, 3, dtype=torch.float64)
    weight = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = in_shares(lambda part: torch.tanh(part @ weight), x)
    loss = (y[:, None] - y[None, :]).pow(4).mean() + weight.pow(4).sum()  # of pairs: no share has a gradient of its own
    (first,) = averaged(torch.autograd.grad(loss, [weight], create_graph=True))
    second = torch.autograd.grad(first.pow(3).sum(), [weight])
    average(second)
    return {"y": y.detach(), "first": first.detach(), "second": second[0]}


def double_batches() -> list[Batch]:
    images, labels = make_tiny().batch(range(23))
    return [Batch(images[a:b].double(), labels[a:b]) for a, b in ((0, 12), (12, 23))]


def meta_gradients() -> dict[str, Tensor]:
    """Of one and of two inner steps; the domain has 11 images."""
    torch.manual_seed(0)
    module = SmoothNet().double()
    source, domain = double_batches()
    found = {}
    for inner_steps, second_order in ((1, True), (2, True), (1, False)):
        meta = meta_gradient(
            module,
            lambda model: batch_losses(model, [source]),
            lambda model: batch_losses(model, [domain, source]),
            rate=2.0,
            inner_steps=inner_steps,
            second_order=second_order,
        )
        average(meta.gradients.values())
        found |= {f"{inner_steps} {second_order} {name}": each for name, each in meta.gradients.items()}
        found[f"{inner_steps} {second_order} losses"] = torch.cat([meta.source_loss, meta.domain_losses])
    return found


def steps() -> dict[str, Tensor]:
    """Gradients and weights after two steps of ERM, SDG and Uncertain SDG, in double precision."""
    found = {}
    source = make_tiny()
    batch = double_batches()[0]
    torch.manual_seed(0)
    erm = set_up(ERM(optimiser="sgd"), own_network(SmoothNet().double(), "features"), source)
    sdg = SDG(optimiser="sgd", domain_size=30, augmented_batch=11, inner_rate=2.0)
    set_up(sdg, own_network(SmoothNet().double(), "features"), source)
    sdg.augmentation.domains = [source.subset(range(20)), source.subset(range(20, 60))]
    sdg.varied = lambda drawn: Batch(drawn.images.double(), drawn.labels)
    methods = {"erm": erm, "sdg": sdg}
    for kind in ("throughout", "alternate", "burst"):
        for image in (False, True):
            given = {"optimiser": "sgd", "domains": 2, "adversary": kind, "image": image, "inner_rate": 0.5}
            methods[f"uncertain {kind} {image}"] = begun(SmoothNet(), source, double=True, **given)
    torch.set_default_dtype(torch.float64)  # hard labels
    for name, method in methods.items():
        for step in range(2):
            torch.manual_seed(step)
            method.train_mode()
            logged = method.step(batch, step)
            found |= {f"{name} {step} {key}": value for key, value in logged.items()}
        found |= {f"{name} {key}": value for key, value in method.network.state_dict().items()}
        if hasattr(method, "phi"):
            found |= {f"{name} phi {key}": value for key, value in method.phi.named_parameters()}
    torch.set_default_dtype(torch.float32)
    return {name: value.detach().clone() for name, value in found.items()}


def curves(folder: Path) -> dict[str, Tensor]:
    """Losses of 20 steps, V and S⁺ between them, in single precision; dropout and BatchNorm would differ."""
    found = {}
    for name in ("erm", "sdg", "uncertain-sdg", "ccsa", "d-sne", "jigen"):
        soon = {**SOON.get(name, {}), "auto_encoder": "conv"} if name == "sdg" else SOON.get(name, {})
        method = method_class(name)(**{**COMMON, "optimiser": "sgd", **soon})
        torch.manual_seed(0)
        given = {"network": SmoothNet(), "embedding": "features", "perturb": ["features.0", "features.3"]}
        run = od.fit(method, make_tiny(), **given, steps=20, progress=False)
        found[name] = torch.tensor([row["loss"] for row in run.history if "loss" in row])
        found[f"{name} scores"] = torch.tensor(run.evaluate({"others": make_tiny(seed=1)})["others"].nll)
    return found


def every_method(folder: Path) -> dict[str, Tensor]:
    """Weights after a few steps of every method, on a network with BatchNorm and dropout."""
    found = {}
    for name in method_names():
        torch.manual_seed(dist.get_rank())  # a network of the user's own may begin otherwise in each process
        given = {"network": TinyNet(), "embedding": "pool", "perturb": ["conv"], "out": folder / name}
        run = od.fit(
            method_class(name)(**{**COMMON, **SOON.get(name, {})}), make_tiny(), **given, steps=5, progress=False
        )
        for module in run.method.modules:
            found |= {f"{name} {len(found)} {key}": value for key, value in module.state_dict().items()}
    return found


def resumed(folder: Path) -> dict[str, Tensor]:
    """Weights of a run, and of one that ended in between, while a domain was made, and was resumed."""
    settings = {**COMMON, **SOON["sdg"], "auto_encoder": "conv", "checkpoint_every": 3}

    def fit(name: str, kind: type[SDG] = SDG, resume: bool = False) -> dict[str, Tensor]:
        torch.manual_seed(0)
        given = {"network": TinyNet(), "embedding": "pool", "out": folder / name, "resume": resume}
        return od.fit(kind(**settings), make_tiny(), **given, steps=8, progress=False).network.state_dict()

    class Killed(SDG):
        name = "sdg"

        def step(self, batch: Batch, step: int) -> dict[str, Tensor]:
            if step == 4:
                raise KeyboardInterrupt
            return super().step(batch, step)

    whole = fit("whole")
    with suppress(KeyboardInterrupt):
        fit("killed", Killed)
    again = fit("killed", resume=True)
    return {name: torch.stack([whole[name], again[name]]) for name in whole}


def refused(folder: Path) -> dict[str, str]:
    """What is said of batches that cannot be split, and of a method that steps by itself."""

    class Alone(od.ERM):
        def set_up(self, setup: Setup) -> None:
            super().set_up(setup)
            self.optimiser = torch.optim.SGD(self.network.module.parameters(), 0.1)

    found = {}
    for name, method in {
        "odd": od.ERM(batch_size=9),
        "few": od.ERM(batch_size=2),
        "alone": Alone(batch_size=4),
    }.items():
        torch.manual_seed(0)
        try:
            od.fit(method, make_tiny(), network=SmoothNet(), out=folder / name, steps=2, progress=False)
        except od.OnedomainError as error:
            found[name] = str(error)
    return found


MATHEMATICS = (collectives, meta_gradients, steps)
RUNS = (curves, every_method, resumed, refused)


def main(file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found: dict[str, dict[str, Any]] = {check.__name__: check() for check in MATHEMATICS}
    found |= {check.__name__: check(Path(file).parent / check.__name__) for check in RUNS}
    torch.save(found, f"{file}-{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
