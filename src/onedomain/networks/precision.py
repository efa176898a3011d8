"""Mixed precision: a network's passes in half the bits, and everything around them in full."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALVES = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def passing(half: torch.dtype | None, device: torch.device) -> AbstractContextManager[object]:
    """Inside, convolutions and products of matrices are in half precision, if one is given.

    Each pass is such a block of its own, and gradients are taken outside of it, those of gradients as well. A block
    keeps the weights that it has cast until it ends: one around several steps would go on with those of the first.
    """
    return nullcontext() if half is None else torch.autocast(device.type, half)


def full(values: Tensor) -> Tensor:
    """What a pass gave, in single precision if it is in half of it: losses and distances are not computed in less."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
