"""The command line. Its rooms import nothing heavy: what a command needs is imported when it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from onedomain._version import __version__
from onedomain.cli import data, lists, results, runs
from onedomain.errors import OnedomainError

app = typer.Typer(
    name="onedomain",
    help="Train on one domain, hold up on the ones you have never seen.",
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


for _command in (
    runs.demo,
    runs.train,
    runs.evaluate,
    runs.predict,
    results.reproduce,
    results.report,
    runs.adapt,
    results.figures,
    data.corrupt,
    lists.methods,
    lists.benchmarks,
):
    app.command()(_command)
app.add_typer(data.app, name="data")

_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main() -> NoReturn:
    """Run the command; a user's mistake ends in one line on standard error."""
    try:
        sys.exit(typer.main.get_command(app).main(prog_name="onedomain", standalone_mode=False) or 0)
    except OnedomainError as error:
        _fail(str(error), error.exit_code)
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        _fail(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except MemoryError:
        _fail("not enough memory; try a smaller batch_size", 1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}", 2)


def _fail(message: str, code: int) -> NoReturn:
    print(f"onedomain: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
