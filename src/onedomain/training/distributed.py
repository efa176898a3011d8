"""The processes that torchrun starts, as one run: the first one writes and talks, all of them compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from onedomain.data.processes import started_together
from onedomain.data.progress import be_silent
from onedomain.errors import OnedomainError, UserError
from onedomain.networks.distributed import place, processes


@contextmanager
def joined(device: str | None = None) -> Iterator[None]:
    """Inside, the processes that were started together are a group; a process by itself stays so."""
    if started_together() == 1 or dist.is_initialized():
        yield
        return
    local, cuda = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.is_available() and device in (None, "cuda")
    if cuda and local >= torch.cuda.device_count():
        given = f"process {local} of this machine has none, of {torch.cuda.device_count()}"
        raise UserError("device", given, "as many processes as GPUs, or --device cpu")
    if cuda:
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    except (RuntimeError, ValueError) as error:
        given = f"the processes do not find each other ({' '.join(str(error).split())[:150]})"
        raise UserError("torchrun", given, "an address and a port that all reach") from None
    try:
        if place() > 0:
            be_silent()
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or any(word in str(error) for word in ("gloo", "NCCL", "by peer")):
            text = "another process of this run has ended; the same command with --resume goes on"
            raise OnedomainError(text) from None
        raise
    finally:
        dist.destroy_process_group()


def refuse_uneven(batch_size: int) -> None:
    """Every process needs as many images as the others, and two of them: BatchNorm takes no single one."""
    count = processes()
    if count > 1 and (batch_size % count or batch_size < 2 * count):
        raise UserError("batch_size", f"{batch_size} for {count} processes", f"a multiple of {count}, from {2 * count}")
