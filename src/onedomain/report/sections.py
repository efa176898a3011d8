"""What the page says of each benchmark and of each run, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.outcomes import OWN
from onedomain.records import RunRecords
from onedomain.report.accuracy import AccuracyTable, accuracy_table
from onedomain.report.answers import Answer, Card, Gallery, galleries
from onedomain.report.comparison import Comparison, compare
from onedomain.report.contenders import changed_settings, method_title, trained_for, usual_settings
from onedomain.report.doubts import DOUBTS, Doubt, uncertainty_by_domain, uncertainty_table
from onedomain.report.figures import Shown, figures
from onedomain.report.headline import headline
from onedomain.report.picture import Panel, panels
from onedomain.report.repeat import commands_to_repeat, repeatable
from onedomain.report.tables import Table, domain_table, training_table
from onedomain.reproduce.paper import setting_text

SMALL = 64  # pixels of a side, up to which an image is shown as squares, not smoothed


@dataclass(frozen=True)
class Link:
    id: str
    text: str


@dataclass(frozen=True)
class Section:
    """One benchmark."""

    id: str
    name: str
    summary: str
    reduced: bool
    holds_up: str
    knows: str
    links: Sequence[Link]
    accuracy: AccuracyTable
    panels: Sequence[Panel]
    galleries: Sequence[dict[str, Any]] = field(repr=False)
    several_seeds: bool
    evaluate_command: str
    figures: Sequence[Shown] = field(repr=False)
    not_drawn: Sequence[tuple[str, str]]
    uncertainty: Table
    uncertainty_by_domain: Table
    terms: Sequence[Doubt]
    training: Table
    domains: Table
    remarks: Sequence[str]


def section(runs: Sequence[RunRecords], benchmark: str, identity: str) -> Section:
    comparison = compare(runs, benchmark)
    said = headline(comparison)
    known = BENCHMARKS.get(benchmark)
    drawn, not_drawn = figures(runs, benchmark)
    links = [
        Link(f"{identity}-images", "Images"),
        *([Link(f"{identity}-figures", "Figures")] if drawn else []),
        Link(f"{identity}-uncertainty", "Uncertainty"),
        Link(f"{identity}-training", "Training"),
    ]
    return Section(
        id=identity,
        name="your own domains" if benchmark == OWN else benchmark,
        summary=known.summary if known else "",
        reduced=bool(reductions(comparison)),
        holds_up=said.holds_up,
        knows=said.knows,
        links=links,
        accuracy=accuracy_table(comparison),
        panels=panels(comparison),
        galleries=[_gallery(each) for each in galleries(comparison)],
        several_seeds=any(len(each.runs) > 1 for each in comparison.contenders),
        evaluate_command=comparison.contenders[0].runs[0].evaluate_command(benchmark),
        figures=drawn,
        not_drawn=not_drawn,
        uncertainty=uncertainty_table(comparison, identity),
        uncertainty_by_domain=uncertainty_by_domain(comparison, identity),
        terms=DOUBTS,
        training=training_table(comparison, identity),
        domains=domain_table(comparison, identity),
        remarks=remarks(comparison),
    )


def _gallery(gallery: Gallery) -> dict[str, Any]:
    role = "unseen" if gallery.unseen else "the source, held out"
    cards = [_card(gallery.domain, card) for card in gallery.cards]
    return {"domain": gallery.domain, "note": " · ".join(filter(None, (role, gallery.note))), "cards": cards}


def _card(domain: str, card: Card) -> dict[str, Any]:
    kinds = {kind for answer in card.answers for kind in _kinds(answer)}
    return {
        "source": card.source,
        "alt": f"{domain} image" + ("" if card.truth is None else f" of {card.truth}"),
        "truth": card.truth,
        "width": card.width,
        "height": card.height,
        "small": max(card.width, card.height) <= SMALL,
        "kinds": " ".join(sorted(kinds)),
        "answers": [
            {
                "title": answer.title,
                "said": answer.said,
                "right": answer.right,
                "sure": f"{100 * answer.confidence:.0f}%",
                "flagged": answer.flagged,
                "doubt": round(100 * answer.doubt),
                "entropy": f"{answer.entropy:.2f}",
            }
            for answer in card.answers
        ],
    }


def _kinds(answer: Answer) -> list[str]:
    """What the filter of the images asks for."""
    if answer.right is not False:
        return []
    return ["wrong", "silent"] if answer.flagged is False else ["wrong"]


def reductions(comparison: Comparison) -> list[str]:
    """In what the runs fall short of the benchmark's protocol."""
    found = []
    known = BENCHMARKS.get(comparison.benchmark)
    there = {column.name for column in comparison.columns}
    missing = [name for name in known.targets if name not in there] if known else []
    if missing:
        found.append(f"Reduced protocol: {', '.join(missing)} of {comparison.benchmark} was not scored.")
    for contender in comparison.contenders:
        parts = [f"{_plain(name)} {value:,} of {usual:,}" for name, (value, usual) in contender.reduced.items()]
        if parts:
            found.append(f"Reduced protocol: {contender.title} was trained with {', '.join(parts)}.")
    return found


def _plain(setting: str) -> str:
    return setting.replace("_", " ")


def remarks(comparison: Comparison) -> list[str]:
    """What a reader must know of the protocol before he trusts a number."""
    found = reductions(comparison)
    made = sorted({column.note for column in comparison.columns} & {"rendered", "blended", "generated"})
    if made:
        found.append(f"Domains marked {' or '.join(made)} were made by onedomain, not collected in the wild.")
    for column in comparison.unseen:
        if not column.same_images:
            found.append(f"{column.name} is left out of the average: the runs were scored on different images of it.")
        elif not column.in_all:
            found.append(f"{column.name} is left out of the average: not every run was scored on it.")
    for contender in comparison.contenders:
        if comparison.benchmark != OWN and not all(trained_for(run, comparison.benchmark) for run in contender.runs):
            elsewhere = contender.runs[0].manifest.benchmark or "your own images"
            found.append(f"{contender.title} was trained on {elsewhere}, not on {comparison.benchmark}.")
    return found


def run_details(runs: Sequence[RunRecords]) -> list[dict[str, Any]]:
    """Each run's settings, what it was made with, and how to repeat it."""
    return [
        {
            "title": method_title(run.manifest.method),
            "seed": run.manifest.seed,
            "folder": str(run.folder),
            "commands": "\n".join(commands_to_repeat(run)) if repeatable(run) else "",
            "how": _how(run),
            "facts": [{"name": name, "text": text} for name, text in _facts(run).items()],
            "settings": _settings(run),
        }
        for run in runs
    ]


def _how(run: RunRecords) -> str:
    if not repeatable(run):
        own = run.manifest.network.own or run.manifest.method
        return f"Trained from Python with {own}: call od.fit with it, the same source, seed and settings."
    if run.manifest.benchmark is None or OWN in run.benchmarks:
        return "DIR stands for a folder of your own images: a run does not record where they were."
    return ""


def _facts(run: RunRecords) -> dict[str, str]:
    manifest, environment = run.manifest, run.manifest.environment
    recorded = next(row for row in run.results if row["metric"] == "accuracy")
    return {
        "begun": _date(manifest.started),
        "scored": ", ".join(sorted({_date(row["date"]) for row in run.results if row["metric"] == "accuracy"})),
        "trained for": f"{recorded['train_seconds'] / 60:.1f} minutes, {recorded['peak_memory_mb']:,} MB at most",
        "on": f"{environment.device}, {environment.threads} threads, {environment.platform}",
        "with": f"onedomain {manifest.onedomain}, torch {environment.torch}, numpy {environment.numpy}, "
        f"Python {environment.python}",
        "source": f"{manifest.source.count:,} images of {manifest.source.name} ({manifest.source.split}), "
        f"fingerprint {manifest.source.fingerprint}",
        "network": f"{manifest.network.name or manifest.network.own}, {recorded['parameters']:,} parameters, "
        f"{recorded['training_parameters']:,} while training",
    }


def _date(text: str) -> str:
    return text[:16].replace("T", " ")


def _settings(run: RunRecords) -> list[dict[str, str]]:
    usual, changed = usual_settings(run), changed_settings(run)
    return [
        {
            "name": name,
            "text": setting_text(value),
            "changed": f"usually {setting_text(usual[name])}" if name in changed and name in usual else "",
        }
        for name, value in run.manifest.settings.items()
    ]
