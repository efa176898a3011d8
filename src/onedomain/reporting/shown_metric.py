"""Which metric figures and reports show of a benchmark: accuracy, or mIoU for segmentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.benchmarks import BENCHMARKS
from onedomain.runs.records import RunRecords


@dataclass(frozen=True)
class ShownMetric:
    """A metric in percent: its name in records, and what it is called."""

    name: str
    title: str
    heading: str  # the title at the beginning of a sentence

    def share(self, value: float) -> str:
        """
        >>> ACCURACY.share(0.4806), MIOU.share(0.4806)
        ('48.1%', '48.1% mIoU')
        """
        return f"{100 * value:.1f}%" + ("" if self is ACCURACY else f" {self.title}")


ACCURACY = ShownMetric("accuracy", "accuracy", "Accuracy")
MIOU = ShownMetric("miou", "mIoU", "mIoU")


def shown_metric(runs: Sequence[RunRecords], benchmark: str) -> ShownMetric:
    """What the benchmark says; of images of one's own, mIoU if the runs were trained for segmentation."""
    known = BENCHMARKS.get(benchmark)
    if known is not None:
        return next(metric for metric in (ACCURACY, MIOU) if metric.name == known.metric)
    return MIOU if all(run.manifest.source.dense for run in runs) else ACCURACY
