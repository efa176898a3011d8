"""The command line: declarations only. What a command does is in `commands.py`, imported when it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from onedomain._version import __version__
from onedomain.adaptation import adaptation_names
from onedomain.errors import OnedomainError, UserError
from onedomain.methods import method_names

app = typer.Typer(
    name="onedomain",
    help="Train on one domain, hold up on the ones you have never seen.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="What data is there, whether it is whole, and how to get it.", no_args_is_help=True)
app.add_typer(data_app, name="data")


def _benchmark_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return list(BENCHMARKS)


def _target_names() -> list[str]:
    from onedomain.benchmarks import BENCHMARKS

    return sorted({name for benchmark in BENCHMARKS.values() for name in benchmark.target_train})


def _data_names() -> list[str]:
    from onedomain.data.prepare import CATALOGUE

    return list(CATALOGUE)


def _network_names() -> list[str]:
    from onedomain.networks.named import NETWORKS

    return list(NETWORKS)


def _corruption_names() -> list[str]:
    from onedomain.data.corruptions import KINDS

    return [*KINDS, "all"]


Method = Annotated[str | None, typer.Option("--method", "-m", autocompletion=method_names, help="See `methods`.")]
BenchmarkName = Annotated[
    str | None, typer.Option("--benchmark", "-b", autocompletion=_benchmark_names, help="See `benchmarks`.")
]
Data = Annotated[str | None, typer.Option("--data", metavar="DIR", help="Where the data sets lie. [ONEDOMAIN_DATA]")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, as `train` makes it.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps; the fastest there is by default.")]
Threads = Annotated[int | None, typer.Option("--threads", help="CPU threads; all cores by default.")]


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


@app.command()
def demo(
    out: Annotated[str, typer.Option("--out", help="Folder for the demo's runs.")] = "runs/demo",
    steps: Annotated[int | None, typer.Option("--steps", help="Training steps of each method.")] = None,
    threads: Threads = None,
) -> None:
    """Train on the embedded digits and score on four unseen domains: a few minutes, nothing to download."""
    from onedomain import commands

    commands.demo(out, steps, threads)


@app.command()
def train(
    benchmark: BenchmarkName = None,
    method: Method = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Decides everything random. [0]")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Training steps.")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", help="Run folder. [runs/BENCHMARK-METHOD-SEED]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="DIR", help="Your own images instead: one sub-folder a class."),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="HxW", help="Bring the images of --source to this size.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", autocompletion=_network_names, help="Another network than the benchmark's."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="FILE", help="Start from weights: .safetensors, or .pth of tensors alone."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    score: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Score on the benchmark's domains afterwards.")
    ] = True,
    track: Annotated[
        str | None,
        typer.Option("--track", metavar="WITH", help="tensorboard: log scalars and images into the run folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Train a method on one domain, then score it on the unseen ones.

    Without options: ERM on digits-lite. Killed or stopped, --resume goes on and ends with the same weights.
    """
    from onedomain import commands

    commands.train(
        benchmark=benchmark,
        method=method,
        seed=seed,
        steps=steps,
        assignments=assignments or [],
        out=out,
        resume=resume,
        source=source,
        size=size,
        network=network,
        weights=weights,
        data=data,
        device=device,
        threads=threads,
        score=score,
        track=track,
        json=json,
    )


@app.command()
def evaluate(
    run: RunFolder,
    benchmark: BenchmarkName = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="NAME=DIR", help="Score your own image folder; may be repeated."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Score a trained run on its benchmark's domains, on another benchmark's, or on your own folders."""
    from onedomain import commands

    commands.evaluate(run, benchmark, on or [], data, device, threads, json)


@app.command()
def predict(
    run: RunFolder,
    images: Annotated[list[str], typer.Argument(metavar="IMAGE…", help="Image files.")],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Where masks and uncertainty maps go. [RUN/predictions]"),
    ] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Say for each image its label, the probability of it, and how uncertain that is.

    A run that labels pixels writes two pictures for each image: the mask, and how uncertain each pixel is.
    """
    from onedomain import commands

    commands.predict(run, images, out, device, json)


def _table_names() -> list[str]:
    from onedomain.reproduce.tables import TABLES

    return list(TABLES)


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", autocompletion=_table_names, help="digits, efficiency, ablation or curves."),
    ],
    scale: Annotated[
        str,
        typer.Option("--scale", metavar="quick|full", help="A reduced protocol, or the whole one (many hours)."),
    ] = "quick",
    seeds: Annotated[int, typer.Option("--seeds", help="How many: 3 are the seeds 0, 1 and 2.")] = 3,
    out: Annotated[
        str | None, typer.Option("--out", help="Folder for runs and table. [runs/reproduce/NAME-SCALE]")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Runs at a time; as many as cores by default.")
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option("--use", metavar="DIR", help="Take finished runs with the same settings from here; repeatable."),
    ] = None,
    records: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="FILE", help="Make the table from records alone, no run; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and how long they take, run none.")] = False,
    data: Data = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Make a table of the paper: run its grid, and print the paper's numbers beside ours.

    Runs that are finished are not repeated; killed or stopped, the same command goes on.
    """
    from onedomain.reproduce.tables import find_scale, find_table

    table, chosen = find_table(name), find_scale(scale)
    if records and (dry_run or use):
        raise UserError("--from", f"given together with {'--dry-run' if dry_run else '--use'}", "one of them")
    from onedomain.reproduce import command

    request = command.Request(table, chosen, seeds, out, jobs, tuple(use or ()), data, device)
    if records:
        command.from_records(request, records, json)
    elif dry_run:
        command.show_what_would_be_done(request, json)
    else:
        command.reproduce(request, json)


@app.command()
def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders; files among them are passed over.")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")] = "report.html",
) -> None:
    """Write one self-contained HTML page of runs: who holds up where, and who knows when not."""
    from onedomain.report import command

    command.report(runs, out)


@app.command()
def adapt(
    run: RunFolder,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="T",
            autocompletion=_target_names,
            help="A benchmark's target, or your own images: NAME=DIR, one sub-folder a class.",
        ),
    ],
    shots: Annotated[
        int, typer.Option("--shots", help="Images to draw of each class; in all, where pixels have labels.")
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", autocompletion=adaptation_names, help="fine-tune, or from scratch: fada, ccsa."),
    ] = "fine-tune",
    seeds: Annotated[int, typer.Option("--seeds", help="How many draws, each adapted by itself.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the first draw.")] = 0,
    steps: Annotated[int | None, typer.Option("--steps", help="Training steps. [see docs/adaptation.md]")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", help="Run folder. [RUN-TARGET-METHOD-SHOTS]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.")] = False,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="DIR", help="Your own images to score; else those that were not drawn."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="DIR", help="The images that RUN was trained on, if they are your own."),
    ] = None,
    data: Data = None,
    device: Device = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Adapt a trained run to a new domain by a few labelled images of it; RUN stays as it is.

    Scores target and source before and after. Images to score are never drawn.
    """
    from onedomain.adaptation import command

    command.adapt_run(
        folder=run,
        target=target,
        shots=shots,
        method=method,
        seeds=seeds,
        seed=seed,
        steps=steps,
        assignments=assignments or [],
        out=out,
        resume=resume,
        test=test,
        source=source,
        data=data,
        device=device,
        threads=threads,
        json=json,
    )


@app.command()
def figures(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders, as `train` makes them.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for the figures.")],
    benchmark: BenchmarkName = None,
    json: Json = False,
) -> None:
    """Draw figures of one or several runs, as SVG and PNG, from their records alone.

    --benchmark says on whose domains; by default the first that all runs were scored on.
    """
    from onedomain.figures import command

    command.figures(runs, out, benchmark, json)


@app.command()
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
    from onedomain import corrupt_command

    corrupt_command.corrupt(folder, kind, severity, out, seed, constants, data)


@app.command()
def methods(json: Json = False) -> None:
    """List the methods."""
    from onedomain import commands

    commands.list_methods(json)


@app.command()
def benchmarks(json: Json = False) -> None:
    """List the benchmarks."""
    from onedomain import commands

    commands.list_benchmarks(json)


DataName = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_data_names, help="See `data list`.")]


@data_app.command("list")
def data_list(data: Data = None, json: Json = False) -> None:
    """What data sets there are, and which lie in the data folder."""
    from onedomain import commands

    commands.data_list(data, json)


@data_app.command("check")
def data_check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", autocompletion=_data_names, help="All by default."),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Whether the data sets are whole: counts, labels, checksums."""
    from onedomain import commands

    commands.data_check(names or [], data, json)


@data_app.command("prepare")
def data_prepare(name: DataName, data: Data = None) -> None:
    """Fetch a data set, or take its official files from the data folder, and convert it."""
    from onedomain import commands

    commands.data_prepare(name, data)


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
