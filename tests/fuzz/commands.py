"""Every command, and each of its options with values that fit and values that do not."""

from __future__ import annotations

from itertools import chain
from typing import Any

import typer
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from onedomain import cli
from tests.fuzz.worker import Input

# A call that ends in moments. A command that is not here fails the test: it must be tried, too.
LINES = {
    "demo": "demo --out demo --steps 1 --threads 1",
    "train": "train --benchmark chaos --steps 1 --threads 1 --out new",
    "evaluate": "evaluate run --threads 1",
    "predict": "predict run image.png",
    "adapt": "adapt run --target near --shots 1 --steps 1 --threads 1 --out new",
    "reproduce": "reproduce chaos --scale few --seeds 1 --out grid --dry-run",
    "tune": "tune --benchmark chaos --trials 1 --steps 1 --jobs 1 --out new",
    "report": "report run --out page.html",
    "figures": "figures run --out figures",
    "corrupt": "corrupt photos --kind brightness --out new",
    "data list": "data list --data photos",
    "data check": "data check usps --data photos",
    "data prepare": "data prepare camvid --data photos",
    "methods": "methods",
    "benchmarks": "benchmarks",
}
KEPT = {"--dry-run", "list", "check", "prepare"}  # without these it would be another command, or work for hours
SHARES = {"report": 0.15, "figures": 0.15, "tune": 0.05}  # of the inputs that others have: they draw for seconds
NEVER = {"--address"}  # would ask other machines
NUMBERS = ("0", "1", "-1", "2", "1.5", "1e3", "nan", "inf", "2147483648", "9" * 25, "0x10", "١", " 1 ", "1_0")
TEXTS = (
    "", " ", ".", "..", "-", "--", "=", "=photos", "a=b", "near=photos", "x=nowhere", "nowhere", "nowhere/deep",
    "--json", "-h",
    "run", "half", "photos", "image.png", "run/run.yaml", "run/results.jsonl", "run/model.safetensors", "weights.pth",
    "table.csv", "mine.py", "erm", "sdg", "uncertain-sdg", "fine-tune", "fada", "chaos", "lenet", "none", "auto", "all",
    "cpu", "cuda:9", "meta", "8x8", "0x0", "3000000000x3000000000", "1x1", "9x", "brightness", "fog", "full",
    "ray", "hf:nowhere", "hf:run", "steps=1", "batch_size=-1", "learning_rate=1e300", "alpha=nan", "gammas=1", "*", "~",
    "\x1b[2J", "two\nlines", "köln ✓", "\udcff", "\u202e", "x" * 300, "%s", "{}", "NUL", "$HOME", "tensorboard",
)  # fmt: skip


def _commands() -> dict[str, Any]:
    """All commands by what is typed, with those of groups."""
    found = {}
    for name, each in typer.main.get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(each, "commands", None)
        found |= {f"{name} {part}": one for part, one in inner.items()} if inner else {name: each}
    return found


def inputs() -> dict[str, SearchStrategy[Input]]:
    """The calls of each command."""
    commands = _commands()
    if missing := commands.keys() - LINES.keys():
        raise LookupError(f"a line in tests/fuzz/commands.py is missing for: {', '.join(sorted(missing))}")
    return {name: _calls(LINES[name], command) for name, command in commands.items()}


def _value(parameter: Any) -> SearchStrategy[list[str]]:
    word = st.one_of(
        st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.text(max_size=8).filter(lambda t: "\0" not in t)
    )
    if parameter.param_type_name == "argument":
        return word.map(lambda given: [given])
    names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name not in NEVER]
    if parameter.is_flag:
        return st.sampled_from(names).map(lambda name: [name])
    return st.tuples(st.sampled_from(names), word).map(list)


def _calls(line: str, command: Any) -> SearchStrategy[Input]:
    """A line that fits, with some options more, or without some of its words."""
    words = tuple(line.split())
    some = [_value(each) for each in command.params if not NEVER & set(each.opts)]
    more = st.lists(st.one_of(*some), min_size=1, max_size=3).map(lambda given: tuple(chain(*given)))
    less = st.lists(st.sampled_from(words[1:] or words), max_size=1).map(
        lambda gone: tuple(word for word in words if word not in gone or word in KEPT)
    )
    return st.builds(lambda kept, added: Input((*kept, *added)), less, more)
