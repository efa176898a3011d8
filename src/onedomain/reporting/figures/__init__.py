"""Figures from run folders alone: no data, no model. `figures_for` draws all that the given runs have records for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from onedomain.reporting.contenders import contenders_of
from onedomain.reporting.figures import (
    calibration,
    curves,
    domains,
    embedding,
    over_training,
    pictures,
    segments,
    severity,
    shots,
)
from onedomain.reporting.figures.ingredients import Missing, regenerated
from onedomain.reporting.figures.style import png, remark_below, save, svg
from onedomain.reporting.shown_metric import ACCURACY, MIOU, shown_metric
from onedomain.runs.records import RunRecords

MOST_OF_A_KIND = 4  # figures of single runs: a page with more of them is not looked at

__all__ = ["KINDS", "Drawn", "Figures", "figures_for", "png", "save", "svg"]


@dataclass(frozen=True)
class Kind:
    """A figure that can be drawn: of all runs together, or one `for_each` group of them."""

    name: str
    title: str
    explanation: str  # one line for a person who does not know the paper
    draw: Callable[[Sequence[RunRecords], str], Figure]
    for_each: bool = False
    of_targets: bool = True  # whether it shows domains that the runs were scored on, not the training alone
    with_miou: str = ""  # the explanation where mIoU is shown, if it is another


@dataclass(frozen=True)
class Drawn:
    name: str
    title: str
    explanation: str
    figure: Figure


class Figures(list[Drawn]):
    """The figures that could be drawn, and for each of the others its name and the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped: list[tuple[str, str]] = []


KINDS = (
    Kind(
        "accuracy",
        "Accuracy per domain",
        "How often each method is right on the domain it was trained on and on those it has never seen. Whiskers show "
        "one deviation over seeds or, for a single run, the 95% interval.",
        domains.accuracy,
        with_miou="How well each method finds the pixels of each class (mean intersection over union), on the domain "
        "it was trained on and on those it has never seen. Whiskers show one deviation over seeds or, for a single "
        "run, the 95% interval of a bootstrap over images.",
    ),
    Kind(
        "accuracy-uncertainty",
        "Accuracy against uncertainty",
        "Each point is a domain: the further right, the less it looks like the source to the model. A model that knows "
        "where it fails has its points fall from top left to bottom right, and a rank correlation near 1.",
        domains.accuracy_and_uncertainty,
        with_miou="Each point is a domain: the further right, the less it looks like the source to the model. A model "
        "that knows where it fails has its points fall from top left to bottom right.",
    ),
    Kind(
        "masks",
        "Images, truth, predictions and uncertainty",
        "Images of domains never seen, the true class of each pixel, what each method says, and how unsure it is "
        "(bright). Striped and faded pixels are void: they have no class and never count.",
        segments.masks,
    ),
    Kind(
        "classes",
        "IoU of each class",
        "Of the pixels that are of a class or were called it, the share that is both. A class that a domain does not "
        "have is left out there.",
        segments.classes,
    ),
    Kind(
        "shots",
        "Accuracy against shots",
        "What a few labelled images of a new domain give there, and what is forgotten of the source. At 0 stands the "
        "run as it was trained; whiskers show one deviation over draws of these images.",
        shots.accuracy_over_shots,
    ),
    Kind(
        "reliability",
        "Reliability",
        "When the model says it is 80% sure, is it right 80% of the time? On the dotted line it is; below the line it "
        "is too sure of itself.",
        calibration.reliability,
    ),
    Kind(
        "risk-coverage",
        "Risk and coverage",
        "If only the most certain answers are kept, how many of them are wrong? A low curve that rises late means that "
        "the uncertainty finds the errors.",
        calibration.risk_coverage,
    ),
    Kind(
        "embedding",
        "Domains in the embedding space",
        "Images as the network sees them, similar ones near each other. Augmented domains that reach beyond the source "
        "towards the unseen ones prepare the network for these.",
        embedding.domains,
    ),
    Kind(
        "augmented-images",
        "Augmented images beside their originals",
        "What the method turned training images into, to train on as if they came from another domain.",
        pictures.augmented_images,
        for_each=True,
        of_targets=False,
    ),
    Kind(
        "settings",
        "Accuracy over K, α and β",
        "How the average on unseen domains changes with the number of made domains and the two weights of SDG. The "
        "dotted line marks the default.",
        curves.settings_curves,
    ),
    Kind(
        "severity",
        "Accuracy over the severity of corruptions",
        "How each method's accuracy falls as the images are corrupted more, over all corruptions and for the four "
        "kinds of noise that the paper shows. Whiskers are one deviation over seeds.",
        severity.over_severity,
    ),
    Kind(
        "perturbation",
        "Feature perturbation over training",
        "How strong the learned noise on images and features is, and how far it carries images, over training.",
        over_training.perturbation,
        of_targets=False,
    ),
    Kind(
        "perturbation-maps",
        "Where the perturbation acts",
        "Images, and over the training steps where they or their features are perturbed most (dark).",
        over_training.perturbation_maps,
        of_targets=False,
    ),
    Kind(
        "embedding-training",
        "The embedding over training",
        "Training images and their perturbed twins as the network sees them, at several training steps.",
        over_training.embedding_over_training,
        of_targets=False,
    ),
    Kind(
        "mixed-labels",
        "Density of the mixed labels",
        "Perturbed images get softer labels: how much of each is left to the true class.",
        over_training.mixed_labels,
        of_targets=False,
    ),
)


def figures_for(
    runs: Sequence[RunRecords], benchmark: str, tell: Callable[[str, float], None] = lambda name, done: None
) -> Figures:
    """All figures that these runs have records for, on the domains of one benchmark (`own` for one's own images).

    `tell` is told the name of each figure before it is drawn, and how much is done, from 0 to 1.
    """
    figures = Figures()
    groups = contenders_of(runs, benchmark)
    for place, kind in enumerate(KINDS):
        tell(kind.name, place / len(KINDS))
        if not kind.for_each:
            _draw(kind, runs, benchmark, figures)
            continue
        makers = [group for group in groups if group.runs[0].augmented()]
        for group in makers[:MOST_OF_A_KIND] or groups[:1]:
            _draw(kind, group.runs, benchmark, figures, group.title if len(makers) > 1 else "")
        for group in makers[MOST_OF_A_KIND:]:
            reason = f"there are {MOST_OF_A_KIND} of its kind already; give {group.runs[0].folder} with fewer others"
            figures.skipped.append((f"{kind.name} of {group.title}", reason))
    return figures


def _draw(kind: Kind, runs: Sequence[RunRecords], benchmark: str, figures: Figures, of: str = "") -> None:
    name, title, explanation = kind.name, kind.title, kind.explanation
    if shown_metric(runs, benchmark) is MIOU:
        name, title = name.replace(ACCURACY.name, MIOU.name), title.replace(ACCURACY.heading, MIOU.heading)
        explanation = kind.with_miou or explanation
    name += f"-{re.sub(r'[^a-z0-9]+', '-', of.lower()).strip('-')}" if of else ""
    try:
        figure = kind.draw(runs, benchmark)
    except Missing as reason:
        figures.skipped.append((name, str(reason)))
        return
    if kind.of_targets and (remark := regenerated(runs, benchmark)):
        remark_below(figure, remark)
    figure.set_label(name)  # figures of one page share no ids
    figures.append(Drawn(name, f"{title}: {of}" if of else title, explanation, figure))
