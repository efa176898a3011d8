"""How a command is declared: a dataclass of its options, and a function that takes it; and how help shows it.

Each field of the dataclass says by `option` or `argument` how typer reads it. The options that several commands share
are at the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from onedomain.data.processes import started_together
from onedomain.errors import Interrupted, UserError, unknown

if TYPE_CHECKING:
    from onedomain.runs.cluster import Cluster

# The headings of commands, in the order in which the help shows them, and of the options that several commands have.
GROUPS = TRAIN, USE, RESULTS, AVAILABLE = "Train", "Use a trained run", "Tables, figures and reports", "What there is"
DATA_AND_DEVICE = "Data and device"
OWN_IMAGES = "Your own images"
RUN_FOLDER = "Run folder"
OUTPUT = "Output"
RUNS = "Runs"
REQUIRED = MISSING
PLACES = ("local", "ray")
TOGETHER = ("train",)  # commands for several processes
MOST_AT_ONCE = 1024  # threads, of which no machine has more to give
Names = Callable[[], list[str]] | str  # what a shell may complete; as MODULE:NAME it is imported when a shell asks


def option(
    declaration: str, help: str, *, default: Any = None, group: str | None = None, complete: Names | None = None
) -> Any:
    """A field that is an option: its names and what stands for its value, as in `--out -o DIR`."""
    *names, last = declaration.split()
    names, metavar = ([*names, last], None) if last.startswith("-") else (names, last)
    info = typer.Option(*names, metavar=metavar, help=help, rich_help_panel=group, autocompletion=_completed(complete))
    return field(default=default, metadata={"typer": info})


def argument(metavar: str, help: str, *, default: Any = REQUIRED, complete: Names | None = None) -> Any:
    """A field that is an argument, given by its place."""
    return field(
        default=default,
        metadata={"typer": typer.Argument(metavar=metavar, help=help, autocompletion=_completed(complete))},
    )


def _completed(names: Names | None) -> Callable[[], list[str]] | None:
    def found() -> list[str]:
        if callable(names):
            return names()
        module, _, name = str(names).partition(":")
        known = getattr(import_module(f"onedomain.{module}"), name)
        return list(known() if callable(known) else known)

    return found if names else None


def command(function: Callable[[Any], None]) -> Callable[..., None]:
    """`function` as typer takes it: each field of the dataclass that it takes is a parameter."""
    [kind] = [hint for name, hint in get_type_hints(function).items() if name != "return"]
    hints = get_type_hints(kind)
    infos = ((each.name, each.metadata["typer"]) for each in fields(kind))
    names = {name: info.default if isinstance(info.default, str) else info.metavar for name, info in infos}

    def run(**values: Any) -> None:
        for name, value in values.items():
            if "" in (value if isinstance(value, list) else [value]):  # a variable of the shell that is not set
                raise UserError(names[name], "is empty", "a value")
        if started_together() > 1 and function.__name__ not in TOGETHER:
            raise UserError("torchrun", f"{function.__name__} is made for one process", " or ".join(TOGETHER))
        try:
            function(kind(**values))
        except KeyboardInterrupt as stop:  # typer would end without a word
            raise Interrupted("stopped", 128 + stop.args[0] if stop.args else 130) from None

    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is REQUIRED else each.default,
            annotation=Annotated[hints[each.name], each.metadata["typer"]],
        )
        for each in fields(kind)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
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


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads, if the user says how many."""
    import torch

    if threads is not None:
        if not 1 <= threads <= MOST_AT_ONCE:
            raise UserError("--threads", f"got {threads}", f"a whole number from 1 to {MOST_AT_ONCE}")
        torch.set_num_threads(threads)


def cluster(options: Any) -> Cluster | None:
    """Where runs are made, by the options of a command that has those below; None: on this machine."""
    if options.on not in PLACES:
        raise unknown("--on", options.on, PLACES)
    for name in ("address", "cpus_per_run", "gpus_per_run"):
        if options.on == "local" and getattr(options, name) is not None:
            raise UserError(f"--{name.replace('_', '-')}", "given without --on ray", "with it")
    if options.on == "local":
        return None
    from onedomain.runs.cluster import Cluster

    cpus, gpus = options.cpus_per_run, options.gpus_per_run
    found = Cluster(options.address, 1 if cpus is None else cpus, gpus or 0.0)
    found.refuse_unreachable()
    return found


def as_typed(options: Any, *names: str) -> list[str]:
    """Those of the options that were given, to be typed again: `--data DIR --threads 1`."""
    given = {name: getattr(options, name.replace("-", "_")) for name in names}
    return [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]


run_folder = partial(argument, "RUN", "A run folder, as `train` makes it.")
run_folders = partial(argument, "RUN…", "Run folders, as `train` makes them.")
benchmark = partial(
    option, "--benchmark -b", "See `onedomain benchmarks`, or FILE.py of your own.", complete="benchmarks:BENCHMARKS"
)
steps = partial(option, "--steps", "Training steps; each method has its own default.")
recipe = partial(
    option,
    "--recipe NAME|FILE",
    "Settings by a name (see `onedomain methods NAME`), or by a file of `tune`; --set changes them. [default]",
)
assignments = partial(option, "--set NAME=VALUE", "Change a setting (see `onedomain methods NAME`); may be repeated.")
resume = partial(option, "--resume", "Resume the run in --out.", default=False, group=RUN_FOLDER)
data = partial(option, "--data DIR", "Where the data sets are. [ONEDOMAIN_DATA]", group=DATA_AND_DEVICE)
device = partial(option, "--device", "cpu, cuda or mps; by default the fastest that is there.", group=DATA_AND_DEVICE)
threads = partial(option, "--threads", "CPU threads; by default one per core.", group=DATA_AND_DEVICE)
jobs = partial(option, "--jobs -j", "How many at a time; by default one per core, or all that Ray takes.", group=RUNS)
on = partial(option, "--on local|ray", "Processes of this machine, or a Ray cluster.", default=PLACES[0], group=RUNS)
address = partial(
    option, "--address A", "A cluster that runs: HOST:PORT or auto; by default it is started. [RAY_ADDRESS]", group=RUNS
)
cpus_per_run = partial(option, "--cpus-per-run", "CPUs that Ray gives each, and its threads. [1]", group=RUNS)
gpus_per_run = partial(option, "--gpus-per-run", "GPUs that Ray gives each; 0.5: two share one. [0]", group=RUNS)
json = partial(option, "--json", "Print one JSON document and nothing else.", default=False, group=OUTPUT)
