"""How a command is declared: a dataclass of its options, and a function that takes it; and how help shows it.

A field's annotation says how typer reads it. The options that several commands share are at the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from onedomain.errors import UserError

# The headings of commands, in the order in which the help shows them, and of the options that several commands have.
GROUPS = TRAIN, USE, RESULTS, AVAILABLE = "Train", "Use a trained run", "Tables, figures and reports", "What there is"
DATA_AND_DEVICE = "Data and device"
RUN_FOLDER = "Run folder"
OUTPUT = "Output"


def command(function: Callable[[Any], None]) -> Callable[..., None]:
    """`function` as typer takes it: each field of the dataclass that it takes is a parameter."""
    [kind] = [hint for name, hint in get_type_hints(function).items() if name != "return"]
    hints = get_type_hints(kind, include_extras=True)

    def run(**values: Any) -> None:
        function(kind(**values))

    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {field.name: hints[field.name] for field in fields(kind)}
    run.__doc__ = function.__doc__
    return run


class GroupedCommand(TyperCommand):
    """A command whose help shows its options in groups; `rich_help_panel` is typer's name for a group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        _write(formatter, groups)


class GroupedCommands(TyperGroup):
    """Several commands, whose help shows them in groups, each with its first sentence in full."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))  # so that the columns of all groups are equal
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, each in self.commands.items():
            group = getattr(each, "rich_help_panel", None) or "Commands"
            groups.setdefault(group, []).append((f"{name:{width}}", each.get_short_help_str(200)))
        _write(formatter, groups)


def _write(formatter: Any, groups: dict[str, list[tuple[str, str]]]) -> None:
    for name, rows in groups.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows)


def benchmark_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return list(BENCHMARKS)


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads, if the user says how many."""
    import torch

    if threads is not None:
        if threads < 1:
            raise UserError("--threads", f"got {threads}", "a whole number from 1")
        torch.set_num_threads(threads)


def as_typed(options: Any, *names: str) -> list[str]:
    """Those of the options that were given, to be typed again: `--data DIR --threads 1`."""
    given = {name: getattr(options, name) for name in names}
    return [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]


BenchmarkName = Annotated[
    str | None, typer.Option("--benchmark", "-b", autocompletion=benchmark_names, help="See `onedomain benchmarks`.")
]
RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, as `train` makes it.")]
RunFolders = Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders, as `train` makes them.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Training steps; each method has its own default.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a setting (see `onedomain methods NAME`); may be repeated."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", rich_help_panel=RUN_FOLDER, help="Resume the run in --out.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", rich_help_panel=DATA_AND_DEVICE, help="Where the data sets are. [ONEDOMAIN_DATA]"
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", rich_help_panel=DATA_AND_DEVICE, help="cpu, cuda or mps; by default the fastest that is there."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", rich_help_panel=DATA_AND_DEVICE, help="CPU threads; by default one per core."),
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON document and nothing else.")]
