"""What the page says of each benchmark, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onedomain.benchmarks import BENCHMARKS
from onedomain.reporting.comparison import Comparison, compare, refuse_old_records
from onedomain.reporting.contenders import trained_for
from onedomain.reporting.page.accuracy import accuracy_table
from onedomain.reporting.page.answers import Answer, Card, Gallery, galleries
from onedomain.reporting.page.corruptions import Corruptions, corruptions
from onedomain.reporting.page.doubts import DOUBTS, Doubt, uncertainty_by_domain, uncertainty_table
from onedomain.reporting.page.figures import Shown, figures
from onedomain.reporting.page.headline import headline
from onedomain.reporting.page.picture import Panel, panels
from onedomain.reporting.page.segments import Segments, segments
from onedomain.reporting.page.tables import domain_table, training_table
from onedomain.reporting.shown_metric import ACCURACY, ShownMetric
from onedomain.reporting.table import Table
from onedomain.runs.layout import OWN
from onedomain.runs.records import RunRecords

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
    metric: ShownMetric
    shaded: bool  # whether the metric is a share of right answers, to be held against that of flagged images
    accuracy: Table
    panels: Sequence[Panel]
    corruptions: Corruptions | None
    galleries: Sequence[dict[str, Any]] = field(repr=False)
    segments: Segments | None = field(repr=False)  # for segmentation, instead of galleries
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
    refuse_old_records(comparison)
    said = headline(comparison)
    known = BENCHMARKS.get(benchmark)
    drawn, not_drawn = figures(runs, benchmark)
    links = [
        *([Link(f"{identity}-corruptions", "Corruptions")] if comparison.corrupted else []),
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
        metric=comparison.metric,
        shaded=comparison.metric is ACCURACY,
        accuracy=accuracy_table(comparison, identity),
        panels=panels(comparison),
        corruptions=corruptions(comparison, identity),
        galleries=[_gallery(each) for each in galleries(comparison)],
        segments=segments(comparison),
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
    cards = [_card(gallery.domain, card) for card in gallery.cards]
    return {"domain": gallery.domain, "note": " · ".join(filter(None, (gallery.role, gallery.note))), "cards": cards}


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
    """What a reader must know of the protocol before trusting a number."""
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
        if contender not in comparison.rivals:
            met = ", ".join(sorted(contender.adapted_to.intersection(comparison.compared)))
            found.append(f"{contender.title} has learned images of {met}: it is not ranked with what has not.")
        if comparison.benchmark != OWN and not all(trained_for(run, comparison.benchmark) for run in contender.runs):
            elsewhere = contender.runs[0].manifest.benchmark or "your own images"
            found.append(f"{contender.title} was trained on {elsewhere}, not on {comparison.benchmark}.")
    return found
