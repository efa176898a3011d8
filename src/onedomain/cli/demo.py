"""`onedomain demo`: what the library does, on data that it brings along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onedomain.cli import options as shared

GROUP = shared.TRAIN
METHODS = ("erm", "sdg", "uncertain-sdg")


@dataclass(frozen=True)
class Options:
    out: str = shared.option("--out DIR", "Folder for the demo's runs.", default="runs/demo")
    steps: int | None = shared.steps()
    threads: int | None = shared.threads()


def demo(options: Options) -> None:
    """Train on the embedded digits and score on four unseen domains: a few minutes, nothing to download."""
    from onedomain.benchmarks import find_benchmark
    from onedomain.benchmarks.protocol.request import DEMO_BENCHMARK, TrainingRequest, score_on
    from onedomain.cli import tables
    from onedomain.data.progress import say
    from onedomain.reporting.comparison import compare
    from onedomain.reporting.page.page import write_report
    from onedomain.runs.layout import WEIGHTS
    from onedomain.runs.records import read_runs
    from onedomain.settings import given_settings

    shared.use_threads(options.threads)
    benchmark, data = find_benchmark(DEMO_BENCHMARK), Path()  # it is embedded and reads no data folder
    say(f"Train on {benchmark.source}, score on {len(benchmark.targets)} domains that training never sees.")
    folders = {name: Path(options.out) / name for name in METHODS}
    for name, folder in folders.items():
        request = TrainingRequest(benchmark.name, method=name, settings=given_settings([], options.steps))
        if (folder / WEIGHTS).exists():
            say(f"{name} is trained already; remove {folder} to train it again.")
        run = request.train(data, out=folder, resume=True)
        run.write_records(score_on(run, benchmark, data), benchmark.name)
    tables.show_comparison(compare(read_runs(list(folders.values())), benchmark.name))
    page = write_report(list(folders.values()), Path(options.out) / "report.html")
    say(f"The runs are in {options.out}. Next: onedomain predict {folders[METHODS[-1]]} IMAGE.png")
    say(f"The report is in {page}: open it in a browser.")
