"""Segmentation: images of unseen domains beside their truth, each method's prediction and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onedomain.evaluation.outcome import Outcome
from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender, first_answers
from onedomain.reporting.page.answers import as_data_address
from onedomain.reporting.segmented import Segmented, seen_in, segmented

OF_A_DOMAIN = 2  # images
FEW_DOMAINS = 3  # of more unseen domains than these one image each is shown


def segments(comparison: Comparison) -> dict[str, Any] | None:
    """All domains with their rows of pictures, and the colours of the classes to be seen in them.

    Of each method's first run; None if no answers of segmentation were kept.
    """
    most = OF_A_DOMAIN if len(comparison.unseen) <= FEW_DOMAINS else 1
    domains: list[dict[str, Any]] = []
    pictures: list[Segmented] = []
    for column in comparison.unseen:
        answered = first_answers(
            comparison.contenders,
            comparison.benchmark,
            column.name,
            lambda outcome: outcome.dense and outcome.mask_predicted is not None,
        )
        shown = segmented([outcome for _, outcome in answered], most) if answered else []
        if shown:
            rows = [_row(answered, picture, place) for place, picture in enumerate(shown)]
            domains.append({"domain": column.name, "note": column.note, "rows": rows})
            pictures += shown
    if not domains:
        return None
    return {"domains": domains, "legend": seen_in(pictures, comparison.contenders[0].runs[0].manifest.source.classes)}


def _row(answered: Sequence[tuple[Contender, Outcome]], picture: Segmented, place: int) -> dict[str, Any]:
    """Pairs: an image and its truth, then of each method what it says and how unsure it is."""
    shown = [(picture.image, "image", ""), (picture.truth, "truth", "")]
    for (contender, outcome), said, unsure in zip(answered, picture.said, picture.unsure, strict=True):
        image = outcome.sample[place]
        shown.append((said, contender.title, f"{outcome.right[image]:.0%} of pixels right"))
        mean = f"{outcome.uncertainty[image]:.2f} nats a pixel"
        shown.append((unsure[..., None], f"{contender.title}, uncertainty", mean))
    height, width, _ = picture.image.shape
    pictures = [
        {"source": as_data_address(pixels), "caption": caption, "note": note} for pixels, caption, note in shown
    ]
    return {"pictures": pictures, "height": height, "width": width}
