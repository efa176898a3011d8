"""What a person reads in the terminal, and the same as JSON."""

from __future__ import annotations

import json as json_format
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from onedomain.data.corruptions import KINDS, SEVERITIES, in_record
from onedomain.data.datasets.base import Row
from onedomain.data.progress import say
from onedomain.evaluation.scores import METRICS, Evaluation, Scores
from onedomain.runs.manifest import AdaptationInfo
from onedomain.training.run import Predictions, Run

if TYPE_CHECKING:
    from onedomain.training.adapted import Adapted

DOMAINS_A_TABLE = 6  # columns of names that fit beside each other


def new_console() -> Console:
    # Rich cuts tables to 80 columns when its output is not a terminal; a pipe or a file has room.
    # Names of files and folders are shown as they are: no markup, no emoji.
    width = None if sys.stdout.isatty() else 140
    return Console(width=width, markup=False, emoji=False, highlight=False)


def new_table(*columns: str, title: str | None = None) -> Table:
    """The first column is a name, folded if it is too long; the others are right-aligned numbers or, last, a text."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        last = place == len(columns) - 1 and not column
        left = place == 0 or last
        table.add_column(column, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    return table


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.1f}–{100 * high:.1f}"


def show_evaluation(run: Run, evaluation: Evaluation) -> None:
    manifest = run.manifest
    title = f"{manifest.method}, seed {manifest.seed}, {run.method.settings.steps} steps on {manifest.source.name}"
    if manifest.adaptation is not None:
        title += f"; {adaptation_title(manifest.adaptation)}, draw {manifest.adaptation.draw}"
    dense = manifest.source.dense
    shown = ("mIoU %", "95% interval", "pixels right %") if dense else ("accuracy %", "95% interval")
    table = new_table("domain", "images", *shown, "NLL", "ECE %", "", title=title)
    for name, scores in evaluation.scores.items():
        remark = scores.note if name in evaluation.unseen else _seen_as(run, name, scores.note)
        first: tuple[str, ...] = (percent(scores.accuracy), _interval(scores.low, scores.high))
        if scores.miou is not None and scores.miou_low is not None and scores.miou_high is not None:
            first = (percent(scores.miou), _interval(scores.miou_low, scores.miou_high), percent(scores.accuracy))
        table.add_row(name, f"{scores.count:,}", *first, f"{scores.nll:.3f}", percent(scores.ece), remark)
    if evaluation.unseen:
        table.add_section()
        average = {metric: evaluation.average(metric) for metric in METRICS}
        right = percent(average["accuracy"])
        first = (percent(average["miou"]), "", right) if dense else (right, "")
        nll, ece = f"{average['nll']:.3f}", percent(average["ece"])
        table.add_row("average unseen", "", *first, nll, ece, "", style="bold")
    new_console().print(table)
    if dense:
        show_classes(run, evaluation)
    show_uncertainty(evaluation)


def show_classes(run: Run, evaluation: Evaluation) -> None:
    """Intersection over union, class by class; a class that a domain does not have is not in its mean."""
    domains = list(evaluation.scores)
    for start in range(0, len(domains), DOMAINS_A_TABLE):
        shown = domains[start : start + DOMAINS_A_TABLE]
        table = new_table("class", *shown, title="IoU %")
        for name in run.classes:
            values = [evaluation[domain].iou.get(name) for domain in shown]
            if any(value is not None for value in values):
                table.add_row(name, *("–" if value is None else percent(value) for value in values))
        new_console().print(table)


def show_uncertainty(evaluation: Evaluation) -> None:
    """How well the model knows what it does not know, domain by domain."""
    heads = ("Brier", "entropy", "error AUROC", "AURC", "domain score", "flagged %")
    table = new_table("domain", *heads, title="Uncertainty")
    for name in [*evaluation.scores, *([None] if evaluation.unseen else [])]:
        values = {
            metric: evaluation.average(metric) if name is None else getattr(evaluation[name], metric)
            for metric in ("brier", "entropy", "error_auroc", "aurc", "domain_score", "flagged")
        }
        cells = [
            "–" if value is None or math.isnan(value) else percent(value) if metric == "flagged" else f"{value:.3f}"
            for metric, value in values.items()
        ]
        if name is None:
            table.add_section()
        table.add_row(name or "average unseen", *cells, style="bold" if name is None else None)
    console = new_console()
    console.print(table)
    correlation = evaluation.rank_correlation()
    if correlation is not None:
        console.print(f"Rank correlation of domain score and accuracy lost, unseen domains: {correlation:.2f}")


def _seen_as(run: Run, name: str, note: str) -> str:
    adapted_to = [info.target for info in run.manifest.adaptations]
    return "; ".join(part for part in ("adapted to" if name in adapted_to else "source", note) if part)


def adaptation_title(info: AdaptationInfo) -> str:
    """How a run was adapted, in a few words."""
    each = "images" if len(info.images) == info.shots else "images a class"
    return f"{info.method} with {info.shots} {each} of {info.target}"


def show_adapted(run: Run, adapted: Adapted) -> None:
    """Before and after, on the target and on the source; what is after with its deviation over draws."""
    info = adapted.run.manifest.adaptation
    steps = "" if info is None else f"{adaptation_title(info)}, {info.settings['steps']} steps"
    count = len(adapted.draws)
    draws = f"{count} draws, mean ± standard deviation" if count > 1 else "1 draw"
    console = new_console()
    console.print(f"{run.manifest.method}, seed {run.manifest.seed}: {steps}; {draws}", style="italic")
    shown = "mIoU" if adapted.metric == "miou" else "accuracy"
    table = new_table("domain", "images", f"{shown} before %", "after %", "change", "")
    for name in adapted.domains:
        change = adapted.change(name)
        scores = next(draw.after[name] for draw in adapted.draws if name in draw.after)
        deviation = "" if change.deviation is None else f" ± {100 * change.deviation:.2f}"
        role = "source" if name == adapted.source else "target"
        table.add_row(
            name,
            f"{scores.count:,}",
            percent(change.mean_before),
            f"{percent(change.mean_after)}{deviation}",
            f"{100 * change.gain:+.2f}",
            "; ".join(part for part in (role, scores.split, scores.note) if part),
        )
    console.print(table)
    seconds = ", ".join(f"{draw.run.seconds:.0f} s" for draw in adapted.draws)
    console.print(f"Adapting took {seconds}.")


def show_comparison(evaluations: Mapping[str, Evaluation], source: str) -> None:
    """Methods as rows, domains as columns."""
    unseen = next(iter(evaluations.values())).unseen
    table = new_table(
        "method",
        f"{source} (source)",
        *unseen,
        "average unseen",
        title="Accuracy %, domains never trained on",
    )
    for method, evaluation in evaluations.items():
        values = [
            evaluation[source].accuracy,
            *(evaluation[name].accuracy for name in unseen),
            evaluation.average(),
        ]
        table.add_row(method, *(percent(value) for value in values))
    new_console().print(table)


def evaluation_as_json(
    run: Run, evaluation: Evaluation, benchmark: str | None, missing: Sequence[str]
) -> dict[str, Any]:
    return {
        "run": str(run.folder),
        "method": run.manifest.method,
        "adaptation": _adaptation_as_json(run),
        "benchmark": benchmark,
        "trained_on": run.manifest.benchmark,
        "seed": run.manifest.seed,
        "steps": run.method.settings.steps,
        "domains": {
            name: _scores_as_json(scores, unseen=name in evaluation.unseen)
            for name, scores in evaluation.scores.items()
        },
        "average": {
            metric: None if math.isnan(evaluation.average(metric)) else evaluation.average(metric)
            for metric in (METRICS if evaluation.unseen else ())
        },
        "rank_correlation": evaluation.rank_correlation(),
        "missing": list(missing),
    }


def _scores_as_json(scores: Scores, unseen: bool) -> dict[str, Any]:
    row = asdict(scores)
    del row["corruption"]
    return {**row, **in_record(scores.corruption), "unseen": unseen}


def _adaptation_as_json(run: Run) -> dict[str, Any] | None:
    info = run.manifest.adaptation
    return None if info is None else info.model_dump(mode="json", exclude={"images", "before"})


def predictions_as_json(files: Sequence[str], predictions: Predictions) -> list[dict[str, Any]]:
    rows = []
    for place, file in enumerate(files):
        label, probabilities = predictions.labels[place], predictions.probabilities[place]
        mean = predictions.mean_probabilities[place]
        scores, flags = predictions.domain_score, predictions.out_of_domain
        rows.append(
            {
                "file": file,
                "label": predictions.classes[label],
                "probability": float(probabilities[label]),
                "uncertainty": float(predictions.uncertainty[place]),
                "predictive_entropy": float(predictions.predictive_entropy[place]),
                "mutual_information": float(predictions.mutual_information[place]),
                "domain_score": None if scores is None else float(scores[place]),
                "out_of_domain": None if flags is None else bool(flags[place]),
                "probabilities": dict(zip(predictions.classes, map(float, probabilities), strict=True)),
                "mean_probabilities": dict(zip(predictions.classes, map(float, mean), strict=True)),
            }
        )
    return rows


def calibration_as_json(run: Run) -> dict[str, Any] | None:
    """What `out_of_domain` rests on: a threshold of the domain score, and whether it was found with held-out images."""
    of = run.calibration
    return None if of is None else {"threshold": of.threshold, "images": of.images, "held_out": of.held_out}


def say_if_not_held_out(run: Run) -> None:
    if run.calibration is not None and not run.calibration.held_out:
        say("note: no source images were held out: out of domain is judged by training images, and flags too many")


def show_predictions(files: Sequence[str], predictions: Predictions) -> None:
    entropies = "entropy (nats)", "mutual information"
    table = new_table("image", "label", "probability %", *entropies, "domain score", "out of domain")
    for row in predictions_as_json(files, predictions):
        score = "–" if row["domain_score"] is None else f"{row['domain_score']:.2f}"
        flag = {None: "–", True: "yes", False: "no"}[row["out_of_domain"]]
        doubts = [f"{row[name]:.3f}" for name in ("uncertainty", "mutual_information")]
        table.add_row(row["file"], row["label"], percent(row["probability"]), *doubts, score, flag)
    new_console().print(table)


def show_masks(rows: Sequence[Mapping[str, Any]]) -> None:
    """What was written for each image, and what it says on the whole."""
    table = new_table("image", "mean entropy (nats)", "domain score", "out of domain", "most of it", "")
    for row in rows:
        score = "–" if row["domain_score"] is None else f"{row['domain_score']:.2f}"
        flag = {None: "–", True: "yes", False: "no"}[row["out_of_domain"]]
        most = max(row["shares"], key=row["shares"].__getitem__)
        share = f"{most}, {100 * row['shares'][most]:.0f}%"
        table.add_row(row["file"], f"{row['uncertainty']:.3f}", score, flag, share)
    console = new_console()
    console.print(table)
    for row in rows:
        console.print(f"{row['file']}: mask in {row['mask']}, uncertainty in {row['uncertainty_map']}", soft_wrap=True)


def show_data(folder: Path, rows: Sequence[Row], json: bool) -> None:
    if json:
        print(json_format.dumps({"folder": str(folder), "data": [asdict(row) for row in rows]}, indent=2))
        return
    table = Table("data", "what it is", "state", "images", box=SIMPLE_HEAD, title=f"In {folder}", title_justify="left")
    for row in rows:
        counts = ", ".join(f"{count:,} {split}" for split, count in row.counts.items())
        table.add_row(row.name, row.what, row.state, counts)
    console = new_console()
    console.print(table)
    for row in rows:  # too long for a column: one line each
        where = row.where.replace(f"{folder}/", "")
        console.print(f"{row.name}: {'; '.join([where, *row.problems])}", soft_wrap=True)


def show_methods(kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Methods, or adaptations, and below them the settings of each."""
    table = Table(kind, "what it does", "step, ERM = 1", "from", box=SIMPLE_HEAD)
    for row in rows:
        cost = "–" if row["cost"] is None else f"{row['cost']:.1f}"
        table.add_row(row["name"], row["summary"], cost, row["citation"])
    console = new_console()
    console.print(table)
    for row in rows:
        settings = Table(f"{row['name']}: --set", "default", "what", box=SIMPLE_HEAD)
        for name, setting in row["settings"].items():
            settings.add_row(name, str(setting["default"]), setting["what"])
        console.print(settings)


def show_benchmarks(rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table("benchmark", "what it is", "source", "unseen targets", "network", box=SIMPLE_HEAD)
    for row in rows:
        targets = ", ".join(row["targets"])
        if row["corruptions"]:  # 95 names
            targets = f"{len(KINDS)} corruptions × {len(SEVERITIES)} severities"
        table.add_row(row["name"], row["summary"], row["source"], targets, row["network"])
    new_console().print(table)
