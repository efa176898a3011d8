"""The command line: one file per command, found by its name.

The file `train.py` holds the command `train`: a function that takes one object with its options, or, for a group of
commands, a `typer.Typer`. `GROUP` says under which heading the help shows it. These files import nothing heavy: what a
command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any, NoReturn

import typer

from onedomain._version import __version__
from onedomain.cli import output
from onedomain.cli.options import GROUPS, GroupedCommand, GroupedCommands, command
from onedomain.data.processes import is_another
from onedomain.errors import Interrupted, OnedomainError

# All other files are commands.
_SHARED = {"options", "output", "board", "tables", "corruption_tables", "reproduce_show"}

app = typer.Typer(
    name="onedomain",
    help="Train on one domain, hold up on the ones you have never seen.",
    cls=GroupedCommands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onedomain {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _add_commands() -> None:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED)
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    for name, module in sorted(modules.items(), key=lambda item: GROUPS.index(item[1].GROUP)):
        found = getattr(module, name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=module.GROUP)
        else:
            app.command(name, cls=GroupedCommand, rich_help_panel=module.GROUP)(command(found))


_add_commands()
_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main() -> NoReturn:
    """Run the command; a user's mistake ends in one line on standard error."""
    output.prepare()
    try:
        code = typer.main.get_command(app).main(prog_name="onedomain", standalone_mode=False) or 0
        output.flush()
    except OnedomainError as error:
        if is_another() and isinstance(error, Interrupted):  # all were asked to stop, and one says so
            output.leave(error.exit_code)
        output.end(str(error), error.exit_code)
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            output.leave(0)
        output.end(error.format_message(), error.exit_code)
    except typer.Abort:
        output.end("stopped", 130)
    except BrokenPipeError:
        output.leave(1)
    except MemoryError:
        output.end("not enough memory; try a smaller batch_size", 1)
    except OSError as error:
        output.end(f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}", 2)
    output.leave(code)
