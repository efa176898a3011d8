"""All public data sets, in the order in which `onedomain data list` shows them."""

from __future__ import annotations

from typing import Any

from onedomain.data.datasets.base import Dataset
from onedomain.data.datasets.camvid import CAMVID
from onedomain.data.datasets.cifar import CIFAR10
from onedomain.data.datasets.cifar_c import CIFAR10_C, CIFAR10_C_LITE
from onedomain.data.datasets.digits import DIGITS
from onedomain.data.datasets.photographs import PHOTOGRAPHS
from onedomain.data.datasets.synthia import SYNTHIA
from onedomain.errors import unknown

CATALOGUE: dict[str, Dataset[Any]] = {
    dataset.name: dataset for dataset in (*DIGITS, CIFAR10, CIFAR10_C, CIFAR10_C_LITE, SYNTHIA, CAMVID, *PHOTOGRAPHS)
}


def find_dataset(name: str) -> Dataset[Any]:
    if name not in CATALOGUE:
        raise unknown("data", name, CATALOGUE)
    return CATALOGUE[name]
