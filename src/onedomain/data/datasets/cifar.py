"""CIFAR-10, the source of `cifar10-c`."""

from __future__ import annotations

from functools import partial

from onedomain.data.datasets.cifar_files import CLASSES, SIDE, VERSIONS, from_archive, from_folder
from onedomain.data.datasets.labelled import Form, Labelled

LITE_SOURCE, LITE_TARGET = 6_000, 1_000  # the first training and test images, of which `cifar10-c-lite` is made
LITE_CALIBRATION = (3_000, 4_000)  # test images whose corrupted copies are not scored there


def _forms(split: str) -> tuple[Form, ...]:
    """Both published versions, unpacked or packed."""
    forms = []
    for version in VERSIONS:
        files = tuple(f"{version.folder}/{name}" for name in version.splits[split])
        forms.append(Form(partial(from_folder, version), files, called=f"{version.folder}/"))
        forms.append(Form(partial(from_archive, version, split), (version.archive,)))
    return tuple(forms)


# SHA-256 of the archives: TensorFlow Datasets (url_checksums/cifar10.txt) and torchvision's prototype data sets.
CIFAR10 = Labelled(
    name="cifar10",
    what="32×32 photographs of ten kinds, the source of cifar10-c",
    home="cifar10/cifar10.npz",
    shape=(SIDE, SIDE, 3),
    counts={"train": 50_000, "test": 10_000},
    needed=("train", "test"),
    classes=CLASSES,
    forms={split: _forms(split) for split in ("train", "test")},
    places=("cifar10", "cifar10/raw", "."),
    addresses=("https://www.cs.toronto.edu/~kriz/",),
    sha256={
        "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    },
)


source = partial(CIFAR10.load, "train")
lite_source = partial(CIFAR10.load, "train", stop=LITE_SOURCE)
lite_held_out = partial(CIFAR10.load, "test", stop=LITE_TARGET)  # clean; under corruptions they are the targets
lite_calibration = partial(CIFAR10.load, "test", start=LITE_CALIBRATION[0], stop=LITE_CALIBRATION[1])
