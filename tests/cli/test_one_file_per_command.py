"""The command line stays thin: a command is one short file, and its function takes one object."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
import typer

from onedomain import cli
from onedomain.cli.options import GroupedCommands

FILES = sorted(Path(cli.__file__).parent.glob("*.py"))
MOST_PARAMETERS, MOST_LINES = 6, 200

ASSESS = '''
from dataclasses import dataclass

from onedomain.cli import options as shared

GROUP = shared.USE


@dataclass(frozen=True)
class Options:
    run: str = shared.run_folder()
    on: list[str] | None = shared.option("--on NAME=DIR", "Images without labels.")
    level: float = shared.option("--level", "Of the interval.", default=0.95)
    json: bool = shared.json()


def assess(options: Options) -> None:
    """Say what accuracy to expect."""
    import json

    print(json.dumps([options.run, options.on, options.level, options.json]))
'''


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_function_has_many_parameters(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            given = node.args
            count = len([*given.posonlyargs, *given.args, *given.kwonlyargs])
            assert count <= MOST_PARAMETERS, f"{file.name}:{node.lineno} has {count}"


@pytest.mark.parametrize("file", [file for file in FILES if file.stem not in cli._SHARED], ids=lambda file: file.stem)
def test_no_file_of_a_command_is_long(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.fixture
def with_assess(tmp_path, monkeypatch):
    """A command line with one file more."""
    (tmp_path / "assess.py").write_text(ASSESS)
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setattr(cli, "app", typer.Typer(cls=GroupedCommands, rich_markup_mode=None))
    cli._add_commands()
    yield
    del sys.modules["onedomain.cli.assess"]


@pytest.mark.usefixtures("with_assess")
def test_a_new_command_is_one_new_file(onedomain):
    code, out, _ = onedomain("assess", "runs/a", "--on", "a=b", "--on", "c=d", "--json")
    assert code == 0
    assert json.loads(out) == ["runs/a", ["a=b", "c=d"], 0.95, True]
    assert json.loads(onedomain("assess", "runs/a")[1]) == ["runs/a", None, 0.95, False]
    code, _, error = onedomain("assess", "runs/a", "--level", "high")
    assert code == 2
    assert "--level" in error
    _, out, _ = onedomain("--help")
    assert "Say what accuracy to expect." in out
