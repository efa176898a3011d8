"""Counts over the answers of a whole domain, in memory that does not grow with it."""

from __future__ import annotations

import torch
from torch import Tensor

RESAMPLES = 1000  # of the bootstrap
DROPPED_BITS = 12  # of the 23 of a float32's mantissa
_DOUBTS = 1 << (31 - DROPPED_BITS)


class ConfidenceBins:
    """Confidence against accuracy in bins of confidence: what the expected calibration error is made of."""

    def __init__(self, bins: int) -> None:
        self.edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
        self.sums = torch.zeros(3, bins, dtype=torch.float64)  # answers, their confidence, right ones

    def add(self, confidence: Tensor, right: Tensor) -> None:
        place = torch.bucketize(confidence, self.edges.to(confidence.device))
        for row, weights in enumerate((torch.ones_like(confidence), confidence, right.to(confidence.dtype))):
            self.sums[row] += torch.bincount(place, weights, len(self.edges) + 1).cpu()

    def error(self) -> float:
        """The mean distance of accuracy from confidence, bins weighed by their answers."""
        count, confidence, right = self.sums
        return float((right - confidence).abs().sum() / count.sum())


class DoubtHistogram:
    """Right and wrong answers by their doubt, for as many answers as an image has pixels.

    A bin is what a float32 keeps if 12 bits are dropped: doubts that differ by less than one part in 2,048 count as
    equal, near 0 as elsewhere. So both scores below are those of doubts rounded that far.
    """

    def __init__(self) -> None:
        self.counts = torch.zeros(2, _DOUBTS, dtype=torch.int64)  # wrong, right

    def add(self, right: Tensor, doubt: Tensor) -> None:
        """One answer each: whether it is right, and a doubt from 0 on."""
        place = (doubt.float() + 0.0).view(torch.int32) >> DROPPED_BITS  # 0.0, since a zero may have a sign
        both = torch.bincount(place + _DOUBTS * right.to(torch.int32), minlength=2 * _DOUBTS)
        self.counts += both.view(2, _DOUBTS).cpu()

    def error_auroc(self) -> float | None:
        """The chance that a wrong answer is more doubtful than a right one, ties counting half; None without both."""
        wrong, right = self.counts.double()
        if not (wrong.sum() > 0 and right.sum() > 0):
            return None
        below = right.cumsum(0) - right / 2
        return float((wrong * below).sum() / (wrong.sum() * right.sum()))

    def aurc(self) -> float:
        """The mean, over n = 1 … N, of the error among the n least doubtful answers; equal doubts share theirs.

        A bin of m answers, e of them wrong, that comes after n answers, w of them wrong, adds Σⱼ (w + j·e/m) / (n + j)
        = e + (w − n·e/m)·(H(n + m) − H(n)) for j = 1 … m, where H are the harmonic numbers.
        """
        occupied = self.counts.sum(0) > 0
        wrong, right = self.counts[:, occupied].double()
        size = wrong + right
        before, wrong_before = size.cumsum(0) - size, wrong.cumsum(0) - wrong
        harmonic = torch.special.digamma(before + size + 1) - torch.special.digamma(before + 1)
        added = wrong + (wrong_before - before * wrong / size) * harmonic
        return float(added.sum() / size.sum())


class Overlaps:
    """Per image and class, the pixels that were found, that are of the class, and that were called it.

    The mIoU of any choice of images follows from their sums, and so how far it rests on the images that there are.
    Three numbers per class and image: a thousand images of 20 classes take half a megabyte.
    """

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.counts: list[Tensor] = []  # (3, classes) of each image

    def add(self, labels: Tensor, predicted: Tensor, void: int | None) -> None:
        """Maps (N, H, W) of one batch."""
        for true, said in zip(labels, predicted, strict=True):
            counted = torch.ones_like(true, dtype=torch.bool) if void is None else true != void
            true, said = true[counted], said[counted]
            each = [torch.bincount(values, minlength=self.classes) for values in (true[true == said], true, said)]
            self.counts.append(torch.stack(each).cpu())

    def intersection_over_union(self) -> list[float | None]:
        """IoU of each class; None for one that the domain does not have, whether it was predicted there or not."""
        hit, true, called = torch.stack(self.counts).sum(0).double()
        union = true + called - hit
        return [float(h / u) if t > 0 else None for h, u, t in zip(hit, union, true, strict=True)]

    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mIoU by a bootstrap over images, with a fixed seed.

        Frames of one video look alike: for those it is too narrow.
        """
        counts = torch.stack(self.counts).double()
        count = len(counts)
        generator = torch.Generator().manual_seed(count)
        sums = []
        for _ in range(RESAMPLES):
            often = torch.bincount(torch.randint(count, (count,), generator=generator), minlength=count)
            sums.append(torch.tensordot(often.double(), counts, 1))
        hit, true, called = torch.stack(sums, 1)
        iou = torch.where(true > 0, hit / (true + called - hit), torch.nan)
        miou = iou.nanmean(1)
        miou = miou[~miou.isnan()]  # a draw of void alone has none
        low, high = torch.quantile(miou, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        return low, high
