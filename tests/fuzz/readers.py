"""Every file that the program reads, and the commands that read it. A further reader is one more entry."""

from __future__ import annotations

import io
import struct
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image
from safetensors.torch import load_file

from onedomain.training.checkpoint import load_checkpoint, save_checkpoint
from tests.fuzz.datasets import json_file, npy_file
from tests.fuzz.mutations import ODD, damaged, edited, json_lines, other_array, safetensors_file, yaml_file
from tests.fuzz.reader import Reader, of
from tests.fuzz.worker import Touch

PREDICT = ("predict run image.png", "predict run image.png --json")
RESUME = "train --benchmark chaos --method {} --threads 1 --out {} --resume --no-evaluate"
AFRESH = "train --benchmark chaos --steps 1 --no-evaluate --threads 1 --out new --weights {}"
OWN = "train --source {} --network chaos --size 8x8 --steps 1 --threads 1 --out new --set batch_size=4"
EVALUATE = "evaluate run --threads 1"
CORRUPT = "corrupt photos --kind brightness --out new"
END = "--no-evaluate --threads 1 --out new"
HUB = f"train --source photos --network hf:vit --size 16x16 --steps 1 --set batch_size=4 {END}"
SIZE = (24, 20)
RECIPE = """method: erm
settings: {learning_rate: 0.01, batch_size: 8}
chosen: {objective: mean, source: abc, benchmark: chaos, score: 0.5, usual: 0.4, trials: 3, seeds: 1,
  searched: [learning_rate], onedomain: "0.1", date: "2026-01-01"}
"""


def prepare(made: Path) -> None:
    """What is read: beside a scored run one that is not finished, weights, images and tables of them."""
    for run in ("half", "half-sdg"):  # its checkpoint is of an earlier step: there is something left to do
        state = load_checkpoint(made / run / "checkpoint.pt")
        save_checkpoint(made / run / "checkpoint.pt", {**state, "step": 4})
        (made / run / "model.safetensors").unlink()
    torch.save(load_file(made / "run" / "model.safetensors"), made / "weights.pth")
    _picture("RGB").save(made / "image.png")
    for label in ("a", "b"):
        (made / "photos" / label).mkdir(parents=True)
        for number in range(3):
            _picture("RGB").save(made / "photos" / label / f"{number}.png")
    rows = "".join(f"photos/{label}/{number}.png,{label}\n" for label in "ab" for number in range(3))
    (made / "recipe.yaml").write_text(RECIPE)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8
    )
    transformers.logging.disable_progress_bar()
    transformers.ViTForImageClassification(config).save_pretrained(made / "vit")
    (made / "vit" / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [1, 1, 1]}')
    (made / "table.csv").write_text(f"path,label\n{rows}")


def readers(made: Path) -> list[Reader]:
    new = partial(of, made)
    report = ("report run --out page.html",)
    outcome, sample = "outcomes/chaos/near.safetensors", "augmented/augmented-1.sample.safetensors"
    embedding, moment = sample.replace("sample", "embedding"), "snapshots/step-000000002.safetensors"
    uncertain = "predict uncertain image.png"
    resume = RESUME.format("sdg", "half-sdg")
    from_weights = AFRESH.format("run/model.safetensors")
    again = "reproduce chaos --scale few --from run/results.jsonl"
    return [
        new("manifest", (*PREDICT, EVALUATE, RESUME.format("erm", "run")), "run/run.yaml", yaml_file),
        new("manifest, report", report, "run/run.yaml", yaml_file, 0.2),
        new("manifest of an adapted run", ("predict adapted image.png",), "adapted/run.yaml", yaml_file),
        new("records", (again, f"{again} --json --out grid", EVALUATE), "run/results.jsonl", json_lines),
        new("records, report", report, "run/results.jsonl", json_lines, 0.4),
        new("metrics", (*PREDICT, RESUME.format("erm", "half")), "run/metrics.jsonl", json_lines),
        new("metrics, figures", ("figures run --out figures",), "run/metrics.jsonl", json_lines, 0.2),
        new("records before adapting", ("report adapted --out page.html",), "adapted/before.jsonl", json_lines, 0.3),
        new("records of a grid", (again.replace("run/results", "grid/records"),), "grid/records.jsonl", json_lines),
        new("metrics, resumed", (RESUME.format("erm", "half"),), "half/metrics.jsonl", json_lines),
        new("outcomes", ("figures run --out figures",), f"run/{outcome}", safetensors_file, 0.5),
        new("calibration", (uncertain,), "uncertain/calibration.safetensors", safetensors_file),
        new("calibration, report", report, "run/calibration.safetensors", safetensors_file, 0.2),
        new("samples", ("figures also-sdg --out figures",), f"also-sdg/{sample}", safetensors_file, 0.3),
        new("embedding", ("figures also-sdg --out figures",), f"also-sdg/{embedding}", safetensors_file, 0.3),
        new("moments", ("figures uncertain --out figures",), f"uncertain/{moment}", safetensors_file, 0.3),
        new("auxiliary weights", (uncertain,), "uncertain/auxiliary.safetensors", safetensors_file),
        new("recipe", (f"train --benchmark chaos --recipe recipe.yaml --steps 1 {END}",), "recipe.yaml", yaml_file),
        new("trials", ("report tuned --out page.html",), "tuned/trials.json", json_file, 0.3),
        new("augmented domain, scored", ("evaluate also-sdg",), "also-sdg/augmented/augmented-1.npy", npy_file, 0.5),
        new("network of the hub", (HUB,), "vit/config.json", json_file, 0.3),
        new("pixels of the hub", (HUB,), "vit/preprocessor_config.json", json_file, 0.2),
        new("checkpoint", (RESUME.format("erm", "half"),), "half/checkpoint.pt", safetensors_file, 1.5),
        new("checkpoint of sdg", (resume,), "half-sdg/checkpoint.pt", safetensors_file, 1.5),
        new("augmented domain", (resume,), "half-sdg/augmented/augmented-1.npy", npy_file, 0.5),
        new("weights of a run", PREDICT, "run/model.safetensors", safetensors_file),
        new("weights, safetensors", (from_weights,), "run/model.safetensors", safetensors_file),
        Reader("weights, pth", (AFRESH.format("weights.pth"),), "weights.pth", _pickled(made)),
        Reader("images", PREDICT, "image.png", _images(), 2.0),
        Reader("images of a folder", (OWN.format("photos"), CORRUPT), "photos/a/0.png", _images()),
        Reader("table, csv", (OWN.format("table.csv"),), "table.csv", _csv(made)),
        Reader("table, parquet", (OWN.format("t.parquet"),), "t.parquet", _parquet(made)),
    ]  # fmt: skip


def _picture(mode: str) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE, 3)).astype(np.uint8)
    image = Image.fromarray(pixels)
    return Image.fromarray(pixels[..., 0].astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)


KINDS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "BMP": ("1", "L", "P", "RGB"),
    "TIFF": ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "F", "LAB"),
    "WEBP": ("RGB", "RGBA"),
    "PPM": ("1", "L", "RGB"),
    "GIF": ("P",),
    "EPS": ("RGB",),
}


def _images() -> SearchStrategy[bytes]:
    """Images of every format and kind of pixels, damaged; also of formats that are not read."""
    whole = []
    for form, modes in KINDS.items():
        for mode in modes:
            for options in ({}, {"compression": "tiff_lzw"} if form == "TIFF" and mode in ("L", "RGB") else {}):
                file = io.BytesIO()
                _picture(mode).save(file, form, **options)
                whole.append(file.getvalue())
    return st.one_of(st.sampled_from(whole).flatmap(damaged), st.builds(_png, *[st.sampled_from(SIDES)] * 2, PIXELS))


SIDES = (0, 1, 3, 2**14, 2**14 + 1, 20_000, 2**31 - 1, 2**32 - 1)
PIXELS = st.tuples(st.sampled_from((1, 8, 16, 3)), st.sampled_from((0, 2, 3, 4, 6, 9)))


def _png(width: int, height: int, pixels: tuple[int, int]) -> bytes:
    """A whole PNG file of a few bytes that says what size it is of."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, *pixels, 0, 0, 0)
    data = zlib.compress(bytes(2**16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _pickled(made: Path) -> SearchStrategy[bytes]:
    content = (made / "weights.pth").read_bytes()
    weights = torch.load(made / "weights.pth")

    def saved(value: Any) -> bytes:
        file = io.BytesIO()
        torch.save(value, file)
        return file.getvalue()

    @st.composite
    def other(draw: Any) -> Any:
        changed = dict(weights)
        name = draw(st.sampled_from(sorted(changed)))
        kind = draw(st.sampled_from(("tensor", "tensor", "odd", "nested", "call", "strange")))
        if kind == "tensor":
            changed[name] = torch.from_numpy(np.ascontiguousarray(draw(other_array(changed[name].numpy()))))
        elif kind == "odd":
            changed[name] = draw(st.sampled_from(ODD))
        elif kind == "call":
            changed[name] = Touch()
        elif kind == "strange":
            changed[name] = draw(
                st.sampled_from(
                    (
                        changed[name].to_sparse(),
                        changed[name].to(torch.complex64),
                        torch.empty(changed[name].shape, device="meta"),
                        changed[name].to(torch.bfloat16),
                        torch.zeros(()).expand(changed[name].shape),
                    )
                )
            )
        return {"state_dict": changed} if kind == "nested" else changed

    return st.one_of(other().map(saved), other().map(saved), edited([1, {"a": 2}]).map(_saved_plain), damaged(content))


def _saved_plain(value: Any) -> bytes:
    file = io.BytesIO()
    try:
        torch.save(value, file)
    except RecursionError:
        return b""
    return file.getvalue()


CELLS = (
    "",
    "a",
    "photos/a/0.png",
    "../outside",
    "/dev/zero",
    "photos",
    "pipe\0",
    '"',
    "\x1b[2J",
    "ä" * 200,
    "x" * 140_000,
)


def _csv(made: Path) -> SearchStrategy[bytes]:
    content = (made / "table.csv").read_bytes()
    cell = st.sampled_from((*CELLS, "path", "label", "photos/b/1.png", "b"))
    rows = st.lists(st.lists(cell, max_size=4).map(",".join), max_size=6)
    odd = rows.map(lambda lines: ("path,label\n" + "\n".join(lines)).encode())
    more = st.tuples(cell, cell).map(lambda row: content + ",".join(row).encode() + b"\n")
    return st.one_of(odd, more, more, damaged(content))


def _parquet(made: Path) -> SearchStrategy[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    paths = [f"photos/{label}/{number}.png" for label in "ab" for number in range(3)]
    names = ["a"] * 3 + ["b"] * 3
    kinds: list[Any] = [
        names, [None, *names[1:]], [1, 1, 1, 2, 2, 2], [0.5] * 3 + [float("nan")] * 3, [b"\xff"] * 6, [["a"]] * 6,
        [{"a": 1}] * 6, [True] * 3 + [False] * 3, ["\x1b[2J"] * 3 + ["b"] * 3, pa.array(names).dictionary_encode(),
    ]  # fmt: skip

    def written(columns: dict[str, Any]) -> bytes:
        file = io.BytesIO()
        parquet.write_table(pa.table(columns), file)
        return file.getvalue()

    column = st.sampled_from(kinds)
    (made / "t.parquet").write_bytes(written({"path": paths, "label": names}))
    whole = st.one_of(
        st.builds(lambda labels: written({"path": paths, "label": labels}), column),
        st.builds(lambda files: written({"file": files, "class": names}), column),
        st.builds(lambda extra: written({"path": paths, "label": names, "more": extra}), column),
        st.just(written({"path": pa.array([], pa.string()), "label": pa.array([], pa.string())})),
        st.just(written({})),
    )
    return st.one_of(whole, damaged(written({"path": paths, "label": names})))
