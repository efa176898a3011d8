"""Small data sets in their published forms, and what may be in the place of their files."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import struct
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from onedomain.data.corruptions import SEVERITIES
from onedomain.data.datasets import camvid, cifar_c
from tests.data import published
from tests.data.datasets import test_cifar as cifar
from tests.data.frames import make_sequence
from tests.fuzz.mutations import ODD, as_json, damaged, edited, other_array
from tests.fuzz.reader import Reader, of
from tests.fuzz.worker import Touch

CHECK = "data check {} --data data"
TRAIN = "train --benchmark benchmarks.py:{} --data {} --network lenet --threads 1 --out new"
LITE = cifar_c.REGENERATED_LITE
MASK = "photos-masks/labels/0.png"
BENCHMARKS = """
from functools import partial
import onedomain as od
from onedomain.data.datasets.cifar import CIFAR10
from onedomain.data.datasets.digits import MNIST, SVHN, USPS

def frames(data):
    return od.frame_folder("photos-masks", classes=("a", "b"), size=(32, 32), void=255)

few = {"steps": 1, "batch_size": 4}
masks = od.Benchmark(name="masks", train=frames, targets={"same": frames}, recipe=few)
digits = od.Benchmark(
    name="raw-digits",
    train=partial(MNIST.load, "train"),
    targets={each.name: partial(each.load, "test") for each in (SVHN, USPS)},
    recipe=few,
)
cifar = od.Benchmark(
    name="cifar", train=partial(CIFAR10.load, "train"), targets={"test": partial(CIFAR10.load, "test")}, recipe=few
)
"""


def prepare(made: Path) -> None:
    """`data` is read by `data check`; files of `raw` have a published checksum, which training does not ask for."""
    data, digits, raw = made / "data", made / "data" / "digits", made / "raw" / "digits"
    for folder in (digits, raw, data / "camvid", data / LITE):
        folder.mkdir(parents=True)
    published.write_npz(digits)
    published.write_h5(digits)
    published.write_png(digits)
    for compress, split in ((False, "test"), (True, "train")):
        shutil.move(published.write_mat(digits, compress)[0], digits / f"synth_{split}_32x32.mat")
    published.write_libsvm(raw)
    published.write_mat(raw)
    for name, array in (("images-idx3", published.GREY), ("labels-idx1", published.DIGITS)):
        (raw / f"train-{name}-ubyte").write_bytes(published.idx(array))
    for version, place in ((cifar.PYTHON, data), (cifar.BINARY, made / "binary")):
        for name, content in cifar.files_of(version).items():
            (place / "cifar10" / version.folder).mkdir(parents=True, exist_ok=True)
            (place / "cifar10" / version.folder / name).write_bytes(content)
    (made / "raw" / "cifar10").mkdir()
    (made / "raw" / "cifar10" / cifar.PYTHON.archive).write_bytes(_packed(_published()))
    frames = {"x": (1, *camvid.SHAPE, 3), "y": (1, *camvid.SHAPE)}
    parts = {
        f"{letter}_{part}": np.zeros(shape, np.uint8) for letter, shape in frames.items() for part in camvid.COUNTS
    }
    np.savez_compressed(data / camvid.FILE, **parts)
    darker = [(cifar.TEST * (1 - severity / 10)).astype(np.uint8) for severity in SEVERITIES]
    np.save(data / LITE / "fog.npy", np.concatenate(darker))
    np.save(data / LITE / "labels.npy", np.tile(cifar.TEST_LABELS, len(SEVERITIES)))
    (data / LITE / "regenerated.json").write_text(json.dumps({"images": len(cifar.TEST), "seed": 0}))
    make_sequence(data, "highway", "dawn", count=4)
    for kind in ("images", "labels"):
        (made / "photos-masks" / kind).mkdir(parents=True)
        for number in range(4):
            published.Image.fromarray(np.eye(32, dtype=np.uint8)).save(made / f"photos-masks/{kind}/{number}.png")
    (made / "benchmarks.py").write_text(BENCHMARKS)


def _published() -> dict[str, bytes]:
    return {f"{cifar.PYTHON.folder}/{name}": content for name, content in cifar.files_of(cifar.PYTHON).items()}


def _packed(files: dict[str, bytes], **about: Any) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, each in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(each)
            for key, value in about.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(each))
    return content.getvalue()


def readers(made: Path) -> list[Reader]:
    new = partial(of, made)
    mask = next((made / "data").glob("synthia/*/GT/LABELS/*/*/000001.png")).relative_to(made).as_posix()
    digits = TRAIN.format("raw-digits", "raw")
    masks = TRAIN.format("masks", "data").replace("lenet", "fcn-small")
    unpacked, binary, packed = (TRAIN.format("cifar", place) for place in ("data", "binary", "raw"))
    lite = (CHECK.format("cifar10-c-lite"), "data list --data data")
    batch = "cifar10/cifar-10-batches-py/test_batch"
    return [
        new("prepared digits", (CHECK.format("mnist"), "data list --data data"), "data/digits/mnist.npz", npz_file),
        new("prepared frames", (CHECK.format("camvid"),), f"data/{camvid.FILE}", npz_file, 0.5),
        new("idx", (f"{digits} --no-evaluate",), "raw/digits/train-images-idx3-ubyte", damaged, 0.5),
        new("idx labels", (f"{digits} --no-evaluate",), "raw/digits/train-labels-idx1-ubyte", damaged, 0.3),
        new("matlab", (CHECK.format("syn"),), "data/digits/synth_test_32x32.mat", damaged),
        new("matlab, compressed", (CHECK.format("syn"),), "data/digits/synth_train_32x32.mat", damaged),
        new("hdf5", (CHECK.format("usps"),), "data/digits/usps.h5", damaged),
        new("libsvm", (digits,), "raw/digits/usps.t.bz2", damaged, 0.3),
        new("list of images", (CHECK.format("mnist-m"),), "data/digits/mnist_m_test_labels.txt", damaged, 0.5),
        new("cifar, pickled", (unpacked,), f"data/{batch}", pickled),
        new("cifar, binary", (binary,), "binary/cifar10/cifar-10-batches-bin/test_batch.bin", damaged, 0.3),
        Reader("cifar, packed", (packed,), f"raw/cifar10/{cifar.PYTHON.archive}", _archives(), 0.3),
        new("corrupted images", lite, f"data/{LITE}/fog.npy", npy_file, 0.5),
        new("corrupted labels", lite, f"data/{LITE}/labels.npy", npy_file, 0.5),
        new("corrupted, note", lite, f"data/{LITE}/regenerated.json", json_file, 0.5),
        new("masks of frames", (CHECK.format("synthia"),), mask, damaged),
        new("masks of one's own", (masks,), MASK, damaged),
    ]


def npy_file(content: bytes) -> SearchStrategy[bytes]:
    """Another array, a header that lies, an archive, or damage."""
    whole = np.load(io.BytesIO(content))
    texts = st.tuples(st.sampled_from(HEADERS), st.booleans())
    lying = texts.map(lambda given: _with_header(given[0], content if given[1] else b""))
    odd = st.sampled_from([pickle.dumps(Touch()), _zipped({"a.npy": content}), _object_array()])
    return st.one_of(other_array(whole).map(_saved), odd, lying, damaged(content))


HEADERS = (
    "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999, 32, 32, 3)}",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (-4, 32, 32, 3)}",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (4.0, 32)}",
    "{'descr': '|u1', 'fortran_order': True, 'shape': ()}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': [('a', '<f8'), ('b', '|S9')], 'fortran_order': False, 'shape': (3,)}",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (12,)}",
    "__import__('os').system('touch outside')",
    "(" * 3000,
    "9**9**9",
    "{}",
)


def _with_header(text: str, content: bytes) -> bytes:
    header = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content[128:]


def _saved(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def _object_array() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([Touch(), None], object), allow_pickle=True)
    return content.getvalue()


def _zipped(files: dict[str, bytes]) -> bytes:
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in files.items():
            archive.writestr(name, each)
    return content.getvalue()


@st.composite
def npz_file(draw: Any, content: bytes) -> bytes:
    """An archive of which arrays are others, gone or of another name; a single array; or damage."""
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged(content))
    with np.load(io.BytesIO(content)) as archive:
        whole = {f"{name}.npy": _saved(archive[name]) for name in archive.files}
    if draw(st.integers(0, 9)) == 0:
        return whole[draw(st.sampled_from(sorted(whole)))]
    files = dict(whole)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(files)))
        match draw(st.sampled_from(("other", "other", "other", "gone", "renamed", "more"))):
            case "gone" if len(files) > 1:
                del files[name]
            case "renamed":
                odd = ("y_\x1b[2J.npy", "../../outside.npy", "y_.npy", "y_text", "/etc/x.npy", "y_none.npy")
                files[draw(st.sampled_from(odd))] = files.pop(name)
            case "more":
                files["y_more"] = b"text"
            case _:
                files[name] = draw(npy_file(whole.get(name, next(iter(whole.values())))))
    return _zipped(files)


@st.composite
def pickled(draw: Any, content: bytes) -> bytes:
    """A batch of CIFAR-10 with other things in it, a pickle that would do something, or damage."""
    match draw(st.sampled_from(("damaged", "damaged", "odd", "odd", "array", "calls", "opcodes"))):
        case "damaged":
            return draw(damaged(content))
        case "odd":
            return pickle.dumps(draw(edited({"data": [0] * 9, "labels": [1, 2]})), protocol=2)
        case "array":
            whole = np.zeros((2, 3072), np.uint8)
            batch = {b"data": draw(other_array(whole)), b"labels": draw(st.sampled_from([*ODD, [1, 2]]))}
            return pickle.dumps(batch, protocol=draw(st.integers(1, 5)))
        case "calls":
            return pickle.dumps({b"data": Touch(), b"labels": [1]}, protocol=2)
    return draw(st.sampled_from(OPCODES))


OPCODES = (
    b"cos\nsystem\n(S'touch outside'\ntR.",
    b"cnumpy\nndarray\n}(S'as_bytes'\nI1\nub.",
    b"cnumpy\nndarray\n(I1\nI2\ntR}S'state'\nI5\nsb.",
    b"}(Vdata\ncnumpy\nndarray\n)Rsb.",
    b"cnumpy\nndarray\n.",
    b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
    b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
    b"P1\n.", b"\x82\x01.", b"0" * 100, b"(" * 100_000 + b".", b"]" + b"]a" * 50_000 + b".",
    b"\x80\x04" + b"]\x94" + b"(h\x00h\x00h\x00e" * 1000 + b".",
)  # fmt: skip


def _archives() -> SearchStrategy[bytes]:
    files = _published()
    links = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
    odd = [_packed(files, **about) for about in (links, {"type": tarfile.FIFOTYPE}, {"type": tarfile.DIRTYPE})]
    odd.append(_packed({f"../{name}": each for name, each in files.items()}))
    return st.one_of(st.sampled_from(odd), damaged(_packed(files)))


def json_file(content: bytes) -> SearchStrategy[bytes]:
    whole = json.loads(content)
    deep = st.sampled_from([b"[" * 5000, b'{"images": ' * 5000, b'{"images": 1e999}', b'{"images": -4}'])
    return st.one_of(edited(whole).map(lambda value: as_json(value).encode()), deep, damaged(content))
