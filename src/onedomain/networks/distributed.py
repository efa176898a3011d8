"""A step on several processes: each passes its share of every batch, and all know what came out of the whole.

All processes hold the same weights, draw the same random numbers and have the same batch. `in_shares` splits a pass
between them and puts the results together again; whatever is not split, all compute alike. So N processes compute what
one would, losses over pairs of samples included, and a method that knows nothing of this is right as it is.

Gradients are those of the sum of all processes' losses, of any order: their mean over the processes is the gradient of
the one loss that all have, for weights whose passes were split and for others. Without a process group, or with one of
a single process, nothing here does anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

BUCKET = 2**25  # values that are averaged at once
LARGE = 2**18  # of a tensor that is averaged by itself


def processes() -> int:
    """How many processes train together; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def place() -> int:
    """Which of them this one is, from 0."""
    return dist.get_rank() if processes() > 1 else 0


def is_shared(count: int) -> bool:
    """Whether a batch of so many samples is split. BatchNorm takes no single sample: of few, each passes all."""
    return 1 < processes() <= count // 2


def own(whole: Tensor, dim: int = 0) -> Tensor:
    """This process's share of the samples along a dimension."""
    count = whole.shape[dim]
    if not is_shared(count):
        return whole
    start, end = _bounds(count, place())
    return whole.narrow(dim, start, end - start)


def gathered(share: Tensor, count: int) -> Tensor:
    """The values of all `count` samples, along the first dimension, from the shares that the processes have of them.

    A gradient comes back from all of them: also from what another process made of this one's share.
    """
    whole: Tensor = _Gather.apply(share, count) if is_shared(count) else share  # type: ignore[no-untyped-call]
    return whole


def in_shares(passed: Callable[..., Any], *whole: Tensor) -> Any:
    """What `passed` gives of the samples in `whole`, split over the processes: a tensor, or several; None stays None.

    Each value is of one sample. Random numbers in between, such as those of dropout, are another process's own.
    """
    count = len(whole[0])
    if not is_shared(count):
        return passed(*whole)
    with _own_randomness(whole[0].device):
        said = passed(*map(own, whole))
    if isinstance(said, tuple):
        return tuple(gathered(each, count) if isinstance(each, Tensor) else each for each in said)
    return gathered(said, count)


def averaged(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Their means over the processes, with a gradient: the same mean of what comes back."""
    if processes() == 1:
        return tensors
    means: Sequence[Tensor] = _Average.apply(*tensors)  # type: ignore[no-untyped-call]
    return means


@torch.no_grad()
def average(tensors: Iterable[Tensor]) -> None:
    """Make each tensor, in place, its mean over the processes."""
    rest: list[Tensor] = []
    for tensor in tensors if processes() > 1 else ():
        if tensor.numel() < LARGE or not tensor.is_contiguous():
            rest.append(tensor)
        else:  # as it lies there, without a copy
            dist.all_reduce(tensor)
            tensor.div_(processes())
    for tensor, mean in zip(rest, _means(rest), strict=True):
        tensor.copy_(mean)


@torch.no_grad()
def spread(tensors: Iterable[Tensor]) -> None:
    """Give every process, in place, the values of the first one."""
    for bucket in _buckets(list(tensors) if processes() > 1 else []):
        flat = _flat(bucket)
        dist.broadcast(flat, 0)
        for tensor, values in zip(bucket, _unflat(flat, bucket), strict=True):
            tensor.copy_(values)


def any_says(*flags: bool, device: torch.device) -> tuple[bool, ...]:
    """For each flag whether any process has set it: all must decide alike what they do together."""
    if processes() == 1:
        return flags
    said = torch.tensor(flags, dtype=torch.int32, device=device)
    dist.all_reduce(said, dist.ReduceOp.MAX)
    return tuple(map(bool, said.tolist()))


def wait() -> None:
    """Until all processes are here."""
    if processes() > 1:
        dist.barrier()


@torch.no_grad()
def alike(tensors: Iterable[Tensor], device: torch.device) -> bool:
    """Whether all processes have the same values here, to the bit."""
    if processes() == 1:
        return True
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    mine = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8).to(device)
    first = mine.clone()
    dist.broadcast(first, 0)
    return not any_says(not torch.equal(first, mine), device=device)[0]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, share: Tensor, count: int) -> Tensor:
        ctx.count = count
        sizes = [end - start for start, end in (_bounds(count, each) for each in range(processes()))]
        padded = share.new_zeros(max(sizes), *share.shape[1:])
        padded[: len(share)] = share
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Scatter.apply(gradient), None  # type: ignore[no-untyped-call]


class _Scatter(torch.autograd.Function):
    """The sum over the processes, of which each keeps its share: what `_Gather` is the transpose of."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor) -> Tensor:
        ctx.count = len(whole)
        total = whole.contiguous().clone()
        dist.all_reduce(total)
        start, end = _bounds(len(whole), place())
        return total[start:end].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Gather.apply(gradient, ctx.count)  # type: ignore[no-untyped-call]


class _Average(torch.autograd.Function):
    """Its own transpose."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(_means(tensors))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _Average.apply(*gradients)  # type: ignore[no-untyped-call]


def _bounds(count: int, which: int) -> tuple[int, int]:
    """Where the share of a process begins and ends: sizes differ by one at most."""
    return which * count // processes(), (which + 1) * count // processes()


def _means(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    for bucket in _buckets(tensors):
        flat = _flat(bucket)
        dist.all_reduce(flat)
        yield from _unflat(flat.div_(processes()), bucket)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one type, in order, as many as are sent at once."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and (tensor.dtype != bucket[0].dtype or sum(map(Tensor.numel, bucket)) + tensor.numel() > BUCKET):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


def _flat(bucket: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in bucket])


def _unflat(flat: Tensor, bucket: Sequence[Tensor]) -> list[Tensor]:
    parts = torch.split(flat, [tensor.numel() for tensor in bucket])
    return [part.view(tensor.shape) for part, tensor in zip(parts, bucket, strict=True)]


@contextmanager
def _own_randomness(device: torch.device) -> Iterator[None]:
    """Inside, random numbers of this process; afterwards all draw alike again, whatever each has drawn."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        begun = hashlib.sha256(torch.get_rng_state().numpy().tobytes() + bytes([place() % 256])).digest()
        torch.manual_seed(int.from_bytes(begun[:7], "big"))
        before = _states(devices)
        yield
        drawn = any(not torch.equal(*pair) for pair in zip(before, _states(devices), strict=True))
    if drawn:  # the next pass shall not draw the same again
        torch.rand(())


def _states(devices: Sequence[torch.device]) -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(each) for each in devices)]
