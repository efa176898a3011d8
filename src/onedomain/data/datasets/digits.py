"""The digit data sets of the paper: MNIST as the source; SVHN, MNIST-M, SYN and USPS as unseen domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from onedomain.data import formats
from onedomain.data.datasets.base import Folder
from onedomain.data.datasets.labelled import Form, Labelled
from onedomain.data.domain import Domain
from onedomain.data.formats import Arrays

SOURCE_IMAGES = 10_000
HELD_OUT_IMAGES = 2_000
SHOTS_IMAGES = 1_000

# Where published files are looked for, in this order; {name} is mnist-m or mnist_m.
PLACES = ("digits", "digits/{name}", "digits/raw", "{name}", ".")


def _digits(name: str, what: str, train: int, test: int, **published: Any) -> Labelled:
    spelled = name.replace("-", "_")
    return Labelled(
        name=name,
        what=what,
        home=f"digits/{spelled}.npz",
        counts={"train": train, "test": test},
        classes=tuple("0123456789"),
        class_called="digit {}",
        places=tuple(dict.fromkeys(place.format(name=each) for place in PLACES for each in (name, spelled))),
        **published,
    )


def _in_both(read: Callable[..., Arrays], *files: str) -> dict[str, tuple[Form, ...]]:
    """The one form of both splits, by file names with {split}."""
    return {split: (Form(read, tuple(file.format(split=split) for file in files)),) for split in ("train", "test")}


def _mnist_forms(prefix: str) -> tuple[Form, ...]:
    names = (f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte")
    return tuple(Form(formats.read_idx, tuple(f"{name}{ending}" for name in names)) for ending in ("", ".gz"))


# SHA-256 of MNIST and SVHN: TensorFlow Datasets (url_checksums/mnist.txt, svhn_cropped.txt), and again in
# torchvision's prototype data sets, from which that of USPS comes. MNIST-M and SYN are published without any.
MNIST = _digits(
    "mnist",
    "handwritten digits, the source",
    shape=(28, 28),
    train=60_000,
    test=10_000,
    needed=("train", "test"),
    forms={"train": _mnist_forms("train"), "test": _mnist_forms("t10k")},
    addresses=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    sha256={
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)
MNIST_M = _digits(
    "mnist-m",
    "MNIST digits blended with photographs",
    shape=(32, 32, 3),
    train=59_001,
    test=9_001,
    forms=_in_both(formats.read_image_list, "mnist_m_{split}", "mnist_m_{split}_labels.txt"),
    get="it has no direct public address: put the folder mnist_m_{split} and mnist_m_{split}_labels.txt "
    "(from yaroslav.ganin.net, or data/mnist_m of github.com/joffery/M-ADA) into digits/mnist-m/",
)
SVHN = _digits(
    "svhn",
    "house numbers from Street View",
    shape=(32, 32, 3),
    train=73_257,
    test=26_032,
    forms=_in_both(formats.read_mat, "{split}_32x32.mat"),
    addresses=("http://ufldl.stanford.edu/housenumbers/",),
    sha256={
        "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    },
)
SYN = _digits(
    "syn",
    "digits rendered from fonts (SynthDigits)",
    shape=(32, 32, 3),
    train=479_400,
    test=9_553,
    # copies of SYN write the digit 0 as 0 or, as SVHN does, as 10
    forms=_in_both(partial(formats.read_mat, lowest=0), "synth_{split}_32x32.mat"),
    get="it has no direct public address: put synth_{split}_32x32.mat (of SynthDigits.zip, from "
    "yaroslav.ganin.net) into digits/syn/",
)
USPS = _digits(
    "usps",
    "digits from envelopes of the US mail",
    shape=(16, 16),
    train=7_291,
    test=2_007,
    forms={
        split: (
            Form(partial(formats.read_usps_h5, split=split), ("usps.h5",)),
            Form(formats.read_usps_libsvm, (libsvm,)),
        )
        for split, libsvm in (("train", "usps.bz2"), ("test", "usps.t.bz2"))
    },
    addresses=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/",),
    sha256={
        "usps.bz2": "3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f",
        "usps.t.bz2": "a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e",
    },
)
DIGITS = (MNIST, MNIST_M, SVHN, SYN, USPS)


source = partial(MNIST.load, "train", stop=SOURCE_IMAGES)  # that of the paper: the first training images


def held_out(data_dir: Folder) -> Domain:
    """The 2,000 training images of MNIST that follow the source: no method trains on them, no table reports them."""
    stop = SOURCE_IMAGES + HELD_OUT_IMAGES
    return replace(MNIST.load("train", data_dir, SOURCE_IMAGES, stop), split="held-out")


def for_shots(data_dir: Folder) -> Domain:
    """The 1,000 training images of MNIST after those: shifted copies of them are what few shots are drawn from."""
    start = SOURCE_IMAGES + HELD_OUT_IMAGES
    return replace(MNIST.load("train", data_dir, start, start + SHOTS_IMAGES), split="for shots")
