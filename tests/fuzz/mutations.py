"""Real files, changed: bytes are flipped, cut and repeated; parts of their content become of another kind."""

from __future__ import annotations

import copy
import json
import struct
from typing import Any

import numpy as np
import yaml
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from safetensors import safe_open
from safetensors.numpy import save

DEEP = 3000  # lists or mappings inside each other
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    1e-320,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    255,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    "",
    "0",
    "text",
    "\x1b[2J\x07",
    "two\nlines",
    "null\0",
    "../../outside",
    "/dev/full",
    "köln ✓",
    "<script>alert(1)</script> | $x^2$ \\input{y}",
    "x" * 20_000,
    [],
    {},
    [[]],
    [None],
    {"dict": []},
    {"__tensor__": "0"},
    ["a", 1],
]


@st.composite
def damaged(draw: Any, content: bytes) -> bytes:
    """Bytes that are flipped, cut out, repeated, put in or cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        if draw(st.booleans()):
            place = min(place, draw(st.integers(0, 200)))  # formats begin with what matters
        size = draw(st.sampled_from((1, 2, 4, 8, 100, len(data) // 2)))
        match draw(st.sampled_from(("flip", "flip", "set", "cut", "repeat", "insert", "truncate", "empty"))):
            case "flip" if data:
                data[place] ^= 1 << draw(st.integers(0, 7))
            case "set" if data:
                data[place] = draw(st.sampled_from((0, 1, 10, 34, 45, 91, 123, 127, 128, 255)))
            case "cut":
                del data[place : place + size]
            case "repeat":
                data[place:place] = data[place : place + size]
            case "insert":
                data[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "truncate":
                del data[place:]
            case "empty":
                data = bytearray(draw(st.sampled_from((b"", b"\n", b"\0" * 4096, b"{}", b"[]", b"\xff\xfe"))))
    return bytes(data)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(inside)[:60]:
        found += _places(part, (*path, key))
    return found


@st.composite
def edited(draw: Any, value: Any) -> Any:
    """Nested lists and mappings, of which some parts are of another kind, gone, too many or far too deep."""
    whole = [copy.deepcopy(value)]
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(_places(whole[0])))
        holder, key, part = whole, 0, whole[0]
        for step in path:
            holder, key, part = part, step, part[step]
        match draw(
            st.sampled_from(("other", "other", "other", "gone", "more", "deep", "wrap", "text", "many", "swap"))
        ):
            case "gone" if path:
                del holder[key]
            case "more" if isinstance(part, dict):
                part[draw(st.sampled_from(("more", "", "\x1b[2J", "steps", "domain")))] = draw(st.sampled_from(ODD))
            case "deep":
                lists = draw(st.booleans())
                for _ in range(draw(st.sampled_from((3, 40, DEEP)))):
                    part = [part] if lists else {"dict": part}
                holder[key] = part
                break  # nothing that walks through it would come back
            case "wrap":
                holder[key] = [part]
            case "text":
                holder[key] = str(part)[:1000]
            case "many" if isinstance(part, list):
                part.extend(part * 500)
            case "swap":
                other: Any = whole[0]
                for step in draw(st.sampled_from(_places(whole[0]))):
                    other = other[step]
                holder[key] = copy.deepcopy(other)
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return whole[0]


def as_json(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * DEEP + "]" * DEEP


def json_lines(content: bytes) -> SearchStrategy[bytes]:
    """One line of a file of records, edited; or the file, damaged."""
    lines = content.decode().splitlines()

    def with_line(given: tuple[int, Any]) -> bytes:
        place, row = given
        return "".join(f"{each}\n" for each in [*lines[:place], as_json(row), *lines[place + 1 :]]).encode()

    one = st.integers(0, len(lines) - 1).flatmap(
        lambda place: st.tuples(st.just(place), edited(json.loads(lines[place])))
    )
    return st.one_of(one.map(with_line), one.map(with_line), damaged(content))


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
YAML = (BOMB, "!!python/object/apply:os.system ['touch outside']\n", "{" * DEEP, "- " * DEEP, "? " * 500, "&a [*a]\n")
YAML += (
    "seed: 2026-01-01\n",
    "seed: 1:30\n",
    "<<: {seed: 1}\n",
    "--- {}\n--- {}\n",
    "seed: 0x7f\n",
    "\t",
    "%TAG ! x\n",
)


def yaml_file(content: bytes) -> SearchStrategy[bytes]:
    """A YAML file of edited content, with what only YAML has, or damaged."""

    def dumped(value: Any) -> bytes:
        try:
            return yaml.safe_dump(value, allow_unicode=True).encode(errors="surrogatepass")
        except (RecursionError, yaml.YAMLError):
            return as_json(value).encode()

    parsed = edited(yaml.safe_load(content)).map(dumped)
    odd = st.tuples(st.sampled_from(YAML), st.booleans()).map(
        lambda given: given[0].encode() + (content if given[1] else b"")
    )
    return st.one_of(parsed, parsed, odd, damaged(content))


def _loaded(content: bytes, space: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    path = space / "loaded.safetensors"
    path.write_bytes(content)
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 (not a dict)


CASTS = ("float16", "float32", "float64", "int64", "int32", "uint8", "int8", "bool", "uint16")


@st.composite
def other_array(draw: Any, array: np.ndarray) -> np.ndarray:
    """An array of another type or shape, or with numbers that nobody expects."""
    with np.errstate(all="ignore"):
        match draw(st.sampled_from(("cast", "flat", "none", "first", "axis", "resize", "turn", "odd", "odd", "one"))):
            case "cast":
                return array.astype(draw(st.sampled_from(CASTS)))
            case "flat":
                return array.reshape(-1)
            case "none":
                return array.reshape(-1)[:0].reshape((0, *array.shape[1:]) if array.ndim else (0,))
            case "first":
                return array[:1] if array.ndim else array
            case "axis":
                return array[..., None]
            case "resize":
                return np.resize(array, tuple(draw(st.lists(st.integers(0, 9), min_size=0, max_size=5))))
            case "turn":
                return np.ascontiguousarray(array.T)
            case "one":
                return np.zeros((1,), array.dtype)
    odd = draw(st.sampled_from((np.nan, np.inf, -np.inf, -1, 0, 127, 1e30, -1e30)))
    changed = array.copy()
    with np.errstate(all="ignore"):
        number = np.asarray(odd).astype(array.dtype)
    if draw(st.booleans()) or not changed.size:
        changed[...] = number
    else:
        changed.reshape(-1)[draw(st.integers(0, changed.size - 1))] = number
    return changed


@st.composite
def _valid(draw: Any, arrays: dict[str, np.ndarray], texts: dict[str, str]) -> bytes:
    """A whole file, of which arrays or texts are other ones."""
    arrays, texts, whole = dict(arrays), dict(texts), sorted(texts)
    for _ in range(draw(st.integers(1, 2))):
        if whole and (not arrays or draw(st.booleans())):
            name = whole.pop(draw(st.integers(0, len(whole) - 1)))
            texts[name] = as_json(draw(edited(json.loads(texts[name]))))
            continue
        if not arrays:
            break
        name = draw(st.sampled_from(sorted(arrays)))
        match draw(st.sampled_from(("other", "other", "other", "gone", "renamed", "more"))):
            case "gone" if len(arrays) > 1:
                del arrays[name]
            case "renamed":
                arrays[draw(st.sampled_from(("", "other", "\x1b[2J", "0", "labels")))] = arrays.pop(name)
            case "more":
                arrays["more"] = arrays[name]
            case _:
                arrays[name] = draw(other_array(arrays[name]))
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, texts)


def safetensors_file(content: bytes, space: Any) -> SearchStrategy[bytes]:
    """Tensors and texts of another kind in a whole file, a header that lies, or damage."""
    size = struct.unpack("<Q", content[:8])[0]
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]

    def lying(value: Any) -> bytes:
        text = as_json(value).encode()
        return struct.pack("<Q", len(text)) + text + rest

    arrays, texts = _loaded(content, space)
    valid = _valid(arrays, texts)
    return st.one_of(valid, valid, valid, edited(header).map(lying), damaged(content))
