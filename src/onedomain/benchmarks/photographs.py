"""Photographs: Office-Caltech-10 and PACS, from each of their domains to the others."""

from __future__ import annotations

from functools import partial

from onedomain.benchmarks.benchmark import Benchmark
from onedomain.data.datasets.photographs import OFFICE_CALTECH, PACS, PhotographFolders
from onedomain.runs.photographs import fine_tuning, of_photographs


def _from_each(dataset: PhotographFolders, first: str) -> list[Benchmark]:
    """One benchmark per domain as the source; the first is named as the data set is."""
    return [
        Benchmark(
            name=dataset.name if source == first else f"{dataset.name}-{source.replace('_', '-')}",
            summary=f"{source} to {', '.join(name for name in dataset.parts if name != source)}: {dataset.what}",
            source=source,
            network="efficientnet-lite0",
            train=partial(dataset.source, source),
            held_out=partial(dataset.source, source, held_out=True),
            calibration=partial(dataset.source, source, held_out=True),
            targets={name: partial(dataset.load, name) for name in dataset.parts if name != source},
            recipe=fine_tuning(dataset.counts[source]),
            settings=of_photographs(3 * dataset.side**2),
        )
        for source in (first, *(name for name in dataset.parts if name != first))
    ]


BENCHMARKS = (*_from_each(OFFICE_CALTECH, "amazon"), *_from_each(PACS, "photo"))
