"""A reader: commands that are called with another file in the place of one that they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.fuzz.mutations import safetensors_file
from tests.fuzz.worker import Input

Kind = Callable[..., SearchStrategy[bytes]]


@dataclass(frozen=True)
class Reader:
    """Some of the commands are called, with a file in whose place is something else. `share` of all inputs are its."""

    name: str
    lines: tuple[str, ...]
    file: str
    contents: SearchStrategy[bytes]
    share: float = 1.0

    def inputs(self) -> SearchStrategy[Input]:
        line = st.sampled_from(self.lines).map(lambda text: tuple(text.split()))
        return st.builds(lambda words, content: Input(words, ((self.file, content),)), line, self.contents)


def of(made: Path, name: str, lines: tuple[str, ...], file: str, kind: Kind, share: float = 1.0) -> Reader:
    """The reader of a file that is there, which `kind` changes."""
    content = (made / file).read_bytes()
    changed = kind(content, made.parent) if kind is safetensors_file else kind(content)
    return Reader(name, lines, file, changed, share)
