"""Segmentation: images of unseen domains beside their truth, each method's prediction and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onedomain.evaluation.masks import palette
from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender
from onedomain.reporting.page.answers import answers_of, as_data_address
from onedomain.reporting.segmented import Segmented, segmented

OF_A_DOMAIN = 2  # images
FEW_DOMAINS = 3  # of more unseen domains than these one image each is shown


@dataclass(frozen=True)
class Picture:
    source: str  # a data: address
    caption: str
    note: str = ""


@dataclass(frozen=True)
class PictureRow:
    """Pairs: an image and its truth, then of each method what it says and how unsure it is."""

    pictures: tuple[Picture, ...]
    height: int
    width: int


@dataclass(frozen=True)
class SegmentedDomain:
    domain: str
    note: str
    rows: tuple[PictureRow, ...]


@dataclass(frozen=True)
class ClassColour:
    name: str
    colour: str  # as CSS has it; empty for void


@dataclass(frozen=True)
class Segments:
    """All domains, and the classes to be seen in them."""

    domains: tuple[SegmentedDomain, ...]
    legend: tuple[ClassColour, ...]


def segments(comparison: Comparison) -> Segments | None:
    """Of each method's first run; None if no answers of segmentation were kept."""
    of_a_domain = OF_A_DOMAIN if len(comparison.unseen) <= FEW_DOMAINS else 1
    domains: list[SegmentedDomain] = []
    pictures: list[Segmented] = []
    for column in comparison.unseen:
        answered = _answered(comparison, column.name)
        outcomes = [outcome for _, outcome in answered]
        found = [segmented(outcomes, place) for place in range(of_a_domain)] if outcomes else []
        shown = [picture for picture in found if picture is not None]
        if shown:
            rows = tuple(_row(answered, picture, place) for place, picture in enumerate(shown))
            domains.append(SegmentedDomain(column.name, column.note, rows))
            pictures += shown
    if not domains:
        return None
    classes = comparison.contenders[0].runs[0].manifest.source.classes
    seen = {number for picture in pictures for number in picture.classes}
    void = any(picture.void for picture in pictures)
    colours = palette(classes)
    legend = [ClassColour(classes[number], "#{:02x}{:02x}{:02x}".format(*colours[number])) for number in sorted(seen)]
    return Segments(tuple(domains), (*legend, *([ClassColour("void, not counted", "")] if void else [])))


def _answered(comparison: Comparison, domain: str) -> list[tuple[Contender, Outcome]]:
    """The methods that kept their answers, on the same images as the first of them."""
    found: list[tuple[Contender, Outcome]] = []
    for contender in comparison.contenders:
        outcome = answers_of(contender.runs[0], comparison.benchmark, domain)
        kept = outcome is not None and outcome.dense and outcome.mask_predicted is not None
        if outcome is not None and kept and (not found or outcome.fingerprint == found[0][1].fingerprint):
            found.append((contender, outcome))
    return found


def _row(answered: Sequence[tuple[Contender, Outcome]], picture: Segmented, place: int) -> PictureRow:
    pictures = [Picture(as_data_address(picture.image), "image"), Picture(as_data_address(picture.truth), "truth")]
    for (contender, outcome), said, unsure in zip(answered, picture.said, picture.unsure, strict=True):
        image = outcome.sample[place]
        pictures.append(
            Picture(as_data_address(said), contender.title, f"{100 * outcome.right[image]:.0f}% of pixels right")
        )
        mean = f"{outcome.uncertainty[image]:.2f} nats a pixel"
        pictures.append(Picture(as_data_address(unsure[..., None]), f"{contender.title}, uncertainty", mean))
    height, width, _ = picture.image.shape
    return PictureRow(tuple(pictures), height, width)
