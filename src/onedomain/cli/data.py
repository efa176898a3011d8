"""Commands about data: what there is, whether it is whole, how to get it, and how to corrupt it."""

from __future__ import annotations

from typing import Annotated

import typer

from onedomain.cli.options import Data, Json
from onedomain.errors import UserError

app = typer.Typer(help="What data is there, whether it is whole, and how to get it.", no_args_is_help=True)


def _data_names() -> list[str]:
    from onedomain.data.datasets.catalogue import CATALOGUE

    return list(CATALOGUE)


def _corruption_names() -> list[str]:
    from onedomain.data.corruptions import KINDS

    return [*KINDS, "all"]


@app.command("list")
def data_list(data: Data = None, json: Json = False) -> None:
    """What data sets there are, and which lie in the data folder."""
    from onedomain.cli.tables import show_data
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import CATALOGUE

    folder = data_folder(data)
    show_data(folder, [dataset.list(folder) for dataset in CATALOGUE.values()], json)


@app.command("check")
def data_check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", autocompletion=_data_names, help="All by default."),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Whether the data sets are whole: counts, labels, checksums."""
    from onedomain.cli.tables import show_data
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import CATALOGUE, find_dataset

    folder = data_folder(data)
    datasets = [find_dataset(name) for name in names or CATALOGUE]
    rows = [dataset.check(folder) for dataset in datasets]
    show_data(folder, rows, json)
    broken = [row.name for row in rows if row.state == "broken"]
    if broken:
        raise UserError("data", f"broken: {', '.join(broken)}", "whole files; remove the broken ones and get them anew")


@app.command("prepare")
def data_prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=_data_names, help="See `data list`.")],
    data: Data = None,
) -> None:
    """Fetch a data set, or take its official files from the data folder, and convert it."""
    from onedomain.data import data_folder
    from onedomain.data.datasets.catalogue import find_dataset
    from onedomain.data.progress import work_in_parts

    dataset = find_dataset(name)
    with work_in_parts(f"prepare {name}") as tell:
        done = dataset.prepare(data_folder(data, to_write=True), tell)
    print(done)


def corrupt(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Your images; sub-folders and names are kept.")],
    kind: Annotated[
        str, typer.Option("--kind", autocompletion=_corruption_names, help="A corruption, such as fog; or all.")
    ],
    out: Annotated[str, typer.Option("--out", help="Where the corrupted images go: a new or empty folder.")],
    severity: Annotated[str, typer.Option("--severity", help="1 (mild) to 5 (severe), or all.")] = "3",
    seed: Annotated[int, typer.Option("--seed", help="Decides everything random.")] = 0,
    constants: Annotated[
        str | None, typer.Option("--constants", help="cifar10-c or imagenet-c; by each image's size by default.")
    ] = None,
    data: Data = None,
) -> None:
    """Corrupt your own images as CIFAR-10-C and ImageNet-C do: to see how a model would hold up.

    Stopped, the same command goes on. Frost needs its overlays in the folder frost of --data.
    """
    from onedomain.cli import corrupt_command

    corrupt_command.corrupt(folder, kind, severity, out, seed, constants, data)
