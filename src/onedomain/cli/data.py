"""`onedomain data`: the public data sets, whether they are there and whole, and how to get them."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from onedomain.cli import options as shared
from onedomain.cli.output import tell

GROUP = shared.AVAILABLE

data = typer.Typer(
    cls=shared.GroupedCommands, help="What data is there, whether it is whole, and how to get it.", no_args_is_help=True
)


@dataclass(frozen=True)
class ListOptions:
    data: str | None = shared.data()
    json: bool = shared.json()


def data_list(options: ListOptions) -> None:
    """What data sets there are, and which are in the data folder."""
    from onedomain.cli.tables import show_data
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import CATALOGUE

    folder = data_folder(options.data)
    show_data(folder, [dataset.list(folder) for dataset in CATALOGUE.values()], options.json)


@dataclass(frozen=True)
class CheckOptions:
    names: list[str] | None = shared.argument(
        "NAME", "All by default.", complete="data.datasets.catalogue:CATALOGUE", default=None
    )
    data: str | None = shared.data()
    json: bool = shared.json()


def data_check(options: CheckOptions) -> None:
    """Whether the data sets are whole: counts, labels, checksums."""
    from onedomain.cli.tables import show_data
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import CATALOGUE, find_dataset
    from onedomain.errors import UserError

    folder = data_folder(options.data)
    datasets = [find_dataset(name) for name in options.names or CATALOGUE]
    rows = [dataset.check(folder) for dataset in datasets]
    show_data(folder, rows, options.json)
    broken = [row.name for row in rows if row.state == "broken"]
    if broken:
        raise UserError("data", f"broken: {', '.join(broken)}", "whole files; remove the broken ones and get them anew")


@dataclass(frozen=True)
class PrepareOptions:
    name: str = shared.argument("NAME", "See `onedomain data list`.", complete="data.datasets.catalogue:CATALOGUE")
    data: str | None = shared.data()


def data_prepare(options: PrepareOptions) -> None:
    """Fetch a data set, or take its official files from the data folder, and convert it."""
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import find_dataset
    from onedomain.data.progress import work_in_parts

    dataset = find_dataset(options.name)
    with work_in_parts(f"prepare {options.name}") as update:
        done = dataset.prepare(data_folder(options.data, to_write=True), update)
    tell(done)


for _name, _function in (("list", data_list), ("check", data_check), ("prepare", data_prepare)):
    data.command(_name, cls=shared.GroupedCommand)(shared.command(_function))
