"""Score a run on the domains of a benchmark: which of them count as seen, and which are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from onedomain.benchmarks import BENCHMARKS, Benchmark
from onedomain.evaluation.scores import Evaluation
from onedomain.training.run import Run


def score_on(run: Run, benchmark: Benchmark, data: Path) -> Evaluation:
    """Scores of every domain whose data are there; `missing` says why the others were not scored.

    A benchmark whose images the run was trained on is refused.
    """
    benchmark.refuse_trained_on(run.manifest.benchmark, f"--benchmark {benchmark.name}")
    domains, missing = benchmark.load_for_scoring(data)
    trained = BENCHMARKS.get(run.manifest.benchmark or "")
    same_source = trained is not None and trained.train is benchmark.train
    # A target that the run was trained on, or adapted to, is not unseen, whatever its images are.
    known = [trained.source] if trained is not None else []
    known += [info.target for info in run.manifest.adaptations if info.benchmark is not None]
    seen = [benchmark.source] if same_source else []
    seen += [name for name in benchmark.targets if name in known]
    evaluation = run.evaluate(domains, seen=seen, progress=True, keep_going=True)
    return replace(evaluation, missing=(*missing, *evaluation.missing))
