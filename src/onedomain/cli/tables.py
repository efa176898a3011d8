"""What a person reads in the terminal of runs and their scores, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.cli.output import print_json
from onedomain.data.corruptions import KINDS, SEVERITIES, in_record
from onedomain.data.datasets.base import Row as DataRow
from onedomain.data.progress import say
from onedomain.evaluation.measures import METRICS
from onedomain.evaluation.scores import Evaluation, Scores, mean_of
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.render.terminal import show
from onedomain.reporting.table import (
    GAP,
    MEAN,
    Cell,
    Row,
    Table,
    count,
    deviation,
    difference,
    interval,
    number,
    numbers,
    percent,
    text,
    texts,
    words,
)
from onedomain.runs.manifest import AdaptationInfo
from onedomain.training.predictions import Predictions
from onedomain.training.run import Run

if TYPE_CHECKING:
    from onedomain.training.adapted import Adapted

AVERAGE = "average unseen"
DOMAINS_A_TABLE = 6  # columns of names that fit beside each other
FEW_TO_RANK = 7  # domains: of fewer, a correlation of 0.8 is within chance (two-sided, 5%)
DOUBTS = ("uncertainty", "predictive_entropy", "mutual_information")  # of a prediction
UNCERTAINTY = {
    "brier": "Brier",
    "entropy": "entropy",
    "error_auroc": "error AUROC",
    "aurc": "AURC",
    "domain_score": "domain score",
    "flagged": "flagged %",
}


def show_evaluation(run: Run, evaluation: Evaluation) -> None:
    groups = {name: [scores] for name, scores in evaluation.scores.items()}
    if evaluation.unseen:
        groups[AVERAGE] = [evaluation[name] for name in evaluation.unseen]
    classes = _classes(run, evaluation) if run.manifest.source.dense else ()
    show(_scores(run, evaluation), *classes, uncertainty(evaluation, "Uncertainty", "domain", groups, UNCERTAINTY))


def _scores(run: Run, evaluation: Evaluation) -> Table:
    manifest, dense = run.manifest, run.manifest.source.dense
    title = f"{manifest.method}, seed {manifest.seed}, {run.method.settings.steps} steps on {manifest.source.name}"
    if manifest.adaptation is not None:
        title += f"; {adaptation_title(manifest.adaptation)}, draw {manifest.adaptation.draw}"
    adapted_to = [info.target for info in manifest.adaptations]
    rows = []
    for name, scores in evaluation.scores.items():
        first = [percent(scores.accuracy), text(interval(scores.low, scores.high))]
        if scores.miou is not None and scores.miou_low is not None and scores.miou_high is not None:
            first = [percent(scores.miou), text(interval(scores.miou_low, scores.miou_high)), first[0]]
        role = "" if name in evaluation.unseen else "adapted to" if name in adapted_to else "source"
        remark = text("; ".join(filter(None, (role, scores.note))))
        rows.append(Row(name, [count(scores.count), *first, number(scores.nll), percent(scores.ece), remark]))
    if evaluation.unseen:
        mean = {metric: evaluation.average(metric) for metric in METRICS}
        right, none = percent(mean["accuracy"]), Cell("")
        first = [percent(mean["miou"]), none, right] if dense else [right, none]
        cells = [none, *first, number(mean["nll"]), percent(mean["ece"]), none]
        rows.append(Row(AVERAGE, cells, MEAN, apart=True))
    shown = ("mIoU %", "95% interval", "pixels right %") if dense else ("accuracy %", "95% interval")
    return Table(title, "domain", [*numbers("images", *shown, "NLL", "ECE %"), *words("")], rows)


def _classes(run: Run, evaluation: Evaluation) -> list[Table]:
    """Intersection over union, class by class; a class that a domain does not have is not in its mean."""
    domains = list(evaluation.scores)
    tables = []
    for start in range(0, len(domains), DOMAINS_A_TABLE):
        shown = domains[start : start + DOMAINS_A_TABLE]
        found = {name: [evaluation[domain].iou.get(name) for domain in shown] for name in run.classes}
        there = {name: values for name, values in found.items() if set(values) != {None}}
        rows = [Row(name, list(map(percent, values))) for name, values in there.items()]
        tables.append(Table("IoU %", "class", numbers(*shown), rows))
    return tables


def uncertainty(
    evaluation: Evaluation, title: str, corner: str, groups: Mapping[str, Sequence[Scores]], metrics: Mapping[str, str]
) -> Table:
    """How well the model knows what it does not know: metrics of each group of domains, as means; two are shares."""
    rows = []
    for label, group in groups.items():
        means = {metric: mean_of(group, metric) for metric in metrics}
        cells = [percent(each) if metric in ("ece", "flagged") else number(each) for metric, each in means.items()]
        rows.append(Row(label, cells, MEAN, apart=True) if label == AVERAGE else Row(label, cells))
    found = evaluation.rank_correlation()
    told = f"Rank correlation of domain score and accuracy lost, unseen domains: {found or 0:.2f}"
    if len(evaluation.unseen) < FEW_TO_RANK:
        told += f"; over {len(evaluation.unseen)} domains that may be chance"
    return Table(title, corner, numbers(*metrics.values()), rows, () if found is None else [told])


def adaptation_title(info: AdaptationInfo) -> str:
    """How a run was adapted, in a few words."""
    each = "images" if len(info.images) == info.shots else "images per class"
    return f"{info.method} with {info.shots} {each} of {info.target}"


def show_adapted(run: Run, adapted: Adapted) -> None:
    """Before and after, on the target and on the source; what is after with its deviation over draws."""
    info = adapted.run.manifest.adaptation
    steps = "" if info is None else f"{adaptation_title(info)}, {info.settings['steps']} steps"
    draws = len(adapted.draws)
    over = f"{draws} draws, mean ± standard deviation" if draws > 1 else "1 draw"
    shown = "mIoU" if adapted.metric == "miou" else "accuracy"
    rows = []
    for name in adapted.domains:
        change = adapted.change(name)
        scores = next(draw.after[name] for draw in adapted.draws if name in draw.after)
        spread = deviation(None if change.deviation is None else 100 * change.deviation)
        role = "source" if name == adapted.source else "target"
        remark = "; ".join(part for part in (role, scores.split, scores.note) if part)
        after = percent(change.mean_after, spread=spread)
        cells = [count(scores.count), percent(change.mean_before), after, difference(100 * change.gain), text(remark)]
        rows.append(Row(name, cells))
    seconds = ", ".join(f"{draw.run.seconds:.0f} s" for draw in adapted.draws)
    show(
        Table(
            f"{run.manifest.method}, seed {run.manifest.seed}: {steps}; {over}",
            "domain",
            [*numbers("images", f"{shown} before %", "after %", "change"), *words("")],
            rows,
            [f"Adapting took {seconds}."],
        )
    )


def show_comparison(comparison: Comparison) -> None:
    """Methods as rows, the best on average first; domains as columns."""
    sources, unseen = ([column.name for column in each] for each in (comparison.sources, comparison.unseen))
    rows = []
    for contender in comparison.contenders:
        found = [comparison.estimate(contender, domain) for domain in (*sources, *unseen)]
        cells = [percent(None if each is None else each.mean) for each in (*found, comparison.average(contender))]
        rows.append(Row(contender.title, cells))
    columns = numbers(*(f"{name} (source)" for name in sources), *unseen, "average unseen")
    show(Table(f"{comparison.metric.heading} %, domains never trained on", "method", columns, rows))


def evaluation_as_json(run: Run, evaluation: Evaluation, benchmark: str | None) -> dict[str, Any]:
    info = run.manifest.adaptation
    return {
        "run": str(run.folder),
        "method": run.manifest.method,
        "adaptation": info and info.model_dump(mode="json", exclude={"images", "before"}),
        "benchmark": benchmark,
        "trained_on": run.manifest.benchmark,
        "seed": run.manifest.seed,
        "steps": run.method.settings.steps,
        "domains": {
            name: {each: value for each, value in vars(scores).items() if each != "corruption"}
            | in_record(scores.corruption)
            | {"unseen": name in evaluation.unseen}
            for name, scores in evaluation.scores.items()
        },
        "average": {
            metric: mean_of([evaluation[name] for name in evaluation.unseen], metric)
            for metric in (METRICS if evaluation.unseen else ())
        },
        "rank_correlation": evaluation.rank_correlation(),
        "missing": list(evaluation.missing),
    }


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
                **{name: float(getattr(predictions, name)[place]) for name in DOUBTS},
                "domain_score": None if scores is None else float(scores[place]),
                "out_of_domain": None if flags is None else bool(flags[place]),
                "probabilities": dict(zip(predictions.classes, map(float, probabilities), strict=True)),
                "mean_probabilities": dict(zip(predictions.classes, map(float, mean), strict=True)),
            }
        )
    return rows


def say_if_not_held_out(run: Run) -> None:
    if run.calibration is not None and not run.calibration.held_out:
        say("note: no source images were held out: out of domain is judged by training images, and flags too many")


def show_predictions(rows: Sequence[Mapping[str, Any]], dense: bool) -> None:
    """What each image was called; for segmentation, what was written for it, and what it says on the whole."""
    labelled = ("label", "probability %", "entropy (nats)", "mutual information", "domain score", "out of domain")
    masked = ("mean entropy (nats)", "domain score", "out of domain", "most of it")
    shown, notes = [], []
    for row in rows:
        flag = {None: Cell(GAP), True: text("yes"), False: text("no")}[row["out_of_domain"]]
        doubt, flagged = number(row["uncertainty"]), [number(row["domain_score"], 2), flag]
        if dense:
            most = max(row["shares"], key=row["shares"].__getitem__)
            cells = [doubt, *flagged, text(f"{most}, {percent(row['shares'][most], 0).text}%")]
            notes.append(f"{row['file']}: mask in {row['mask']}, uncertainty in {row['uncertainty_map']}")
        else:
            cells = [
                text(row["label"]),
                percent(row["probability"]),
                doubt,
                number(row["mutual_information"]),
                *flagged,
            ]
        shown.append(Row(row["file"], cells))
    show(Table("", "image", numbers(*(masked if dense else labelled)), shown, notes))


def show_data(folder: Path, rows: Sequence[DataRow], json: bool) -> None:
    if json:
        print_json({"folder": str(folder), "data": [asdict(row) for row in rows]})
        return
    shown, notes = [], []
    for row in rows:
        counts = ", ".join(f"{images:,} {split}" for split, images in row.counts.items())
        shown.append(Row(row.name, texts(row.what, row.state, counts)))
        where = row.where.replace(f"{folder}/", "")
        notes.append(f"{row.name}: {'; '.join([where, *row.problems])}")  # too long for a column
    show(Table(f"In {folder}", "data", words("what it is", "state", "images"), shown, notes))


def show_benchmarks() -> None:
    shown = []
    for each in BENCHMARKS.values():
        many = f"{len(KINDS)} corruptions × {len(SEVERITIES)} severities"  # 95 names
        targets = many if each.corruptions else ", ".join(each.targets)
        shown.append(Row(each.name, texts(each.summary, each.source, targets, each.network)))
    show(Table("", "benchmark", words("what it is", "source", "unseen targets", "network"), shown))
