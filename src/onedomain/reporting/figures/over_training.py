"""What training made: augmented images and, of Uncertain SDG, how far it perturbs, where, and the mixed labels y⁺."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from onedomain.data.arrays import FloatArray
from onedomain.reporting.contenders import contenders_of
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.reporting.figures.embedding import IN_LEGEND, draw_points, project
from onedomain.reporting.figures.style import HATCHES, WIDTH, legend_above, look, panels, show_image, without_axes
from onedomain.runs.records import RunRecords
from onedomain.runs.samples import Snapshot, mosaic

CARRIED = ("embedding", "perturbed_embedding")


@figure(
    "augmented-images",
    "Augmented images beside their originals",
    "What the method turned training images into, to train on as if they came from another domain.",
    place=9,
    for_each=True,
    of_targets=False,
)
def augmented_images(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    samples = runs[0].augmented()
    if not samples:
        raise Missing("the method makes no images, or the run was trained without a run folder")
    mosaics = [mosaic(sample) for sample in samples]
    height = WIDTH * mosaics[0].shape[0] / mosaics[0].shape[1] + 0.3
    figure, shown = panels(len(mosaics), height, columns=1, extra=0)
    for axes, sample, pixels in zip(shown, samples, mosaics, strict=True):
        show_image(axes, pixels)
        axes.set_title(f"{sample.domain}: originals above, augmented below", loc="left")
    return figure


LABEL_BINS = 25
MAPPED = 3  # images whose |e| is shown
MOMENTS = 4  # of an embedding over training


@figure(
    "perturbation",
    "Feature perturbation over training",
    "How strong the learned noise on images and features is, and how far it carries images, over training.",
    place=12,
    of_targets=False,
)
def perturbation(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """|e| = |h⁺ − h| over training: its mean and quartiles over images, and how far it carries z."""
    figure, (strength, transport) = panels(2, 2.1, x="training step")
    for place, (title, moments) in enumerate(_with_snapshots(runs, benchmark, *CARRIED, "perturbation")):
        steps = [moment.step for moment in moments]
        values = [moment.arrays["perturbation"].mean(1) for moment in moments]
        style = look(place)
        strength.plot(steps, [each.mean() for each in values], label=title, **style)
        quartiles = np.array([np.quantile(each, (0.25, 0.75)) for each in values])
        strength.fill_between(steps, *quartiles.T, color=style["color"], alpha=0.2, linewidth=0)
        transport.plot(steps, [carried(moment) for moment in moments], **style)
    strength.set_title("|e|, mean over layers")
    transport.set_title("‖z⁺ − z‖ by the spread of z")
    for axes in (strength, transport):
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    legend_above(figure)
    return figure


@figure(
    "perturbation-maps",
    "Where the perturbation acts",
    "Images, and over the training steps where they or their features are perturbed most (dark).",
    place=13,
    of_targets=False,
)
def perturbation_maps(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """Where |e| of the first layer, or of the image itself, is large: dark is more. Rows: images; columns: moments."""
    every = _with_snapshots(runs, benchmark, "images")
    mapped = [(title, [each for each in moments if "perturbation_maps" in each.arrays]) for title, moments in every]
    mapped = [(title, moments) for title, moments in mapped if moments]
    if not mapped:
        raise Missing("the first perturbed layer gives no maps")
    rows = sum(len(moments[0].arrays["images"][:MAPPED]) for _, moments in mapped)
    columns = 1 + max(len(moments) for _, moments in mapped)
    figure, shown = panels(rows * columns, 4.6 / columns, columns, extra=0.35 * len(mapped))
    cells = iter(shown)
    for name, moments in mapped:
        values = np.stack([moment.arrays["perturbation_maps"].astype(np.float32) for moment in moments])
        low, high = float(values.min()), float(values.max())
        for number, image in enumerate(moments[0].arrays["images"][:MAPPED]):
            row = [next(cells) for _ in range(columns)]
            for axes in row:
                without_axes(axes)
            show_image(row[0], image)
            for axes, maps in zip(row[1:], values, strict=False):
                axes.imshow(maps[number], cmap="gray_r", vmin=low, vmax=high, interpolation="none")
            if number == 0:
                title = f"{name}: |e| from {low:.2f} (white) to {high:.2f} (black)\nstep"
                above = row[0].annotate(title, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points")
                above.set_in_layout(False)  # it would widen its column
                for axes, moment in zip(row[1:], moments, strict=False):
                    axes.set_title(f"\n{moment.step}")
    return figure


@figure(
    "embedding-training",
    "The embedding over training",
    "Training images and their perturbed twins as the network sees them, at several training steps.",
    place=14,
    of_targets=False,
)
def embedding_over_training(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    moments = []
    for name, every in _with_snapshots(runs, benchmark, *CARRIED):  # the first, the last and some between:
        places = np.unique(np.linspace(0, len(every) - 1, min(MOMENTS, len(every))).round().astype(int))
        moments.append([(name, every[place]) for place in places])
    chosen = [pair for same_time in zip(*moments, strict=False) for pair in same_time]
    figure, shown = panels(len(chosen), 2.3, extra=0.4)
    for axes, (name, moment) in zip(shown, chosen, strict=True):
        kinds = {"source": moment.arrays["embedding"], "augmented": moment.arrays["perturbed_embedding"]}
        draw_points(axes, project(kinds), labels={})
        axes.set_title(f"{name}\nstep {moment.step}" if len(moments) > 1 else f"step {moment.step}")
    legend_above(figure, IN_LEGEND)
    return figure


@figure(
    "mixed-labels",
    "Density of the mixed labels",
    "Perturbed images get softer labels: how much of each is left to the true class.",
    place=15,
    of_targets=False,
)
def mixed_labels(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    curves: dict[str, FloatArray] = {}
    groups = _with_snapshots(runs, benchmark, "labels")
    for title, every in groups:
        moments = [moment for moment in every if "mixed_labels" in moment.arrays]
        for moment in moments[-1:] if len(groups) > 1 else [*moments[:1], *moments[1:][-1:]]:
            curves[title if len(groups) > 1 else f"step {moment.step}"] = of_true_class(moment)
    if not curves:
        raise Missing("the runs mix no labels (mixup_weight is 0)")
    low = np.floor(10 * min(0.99, *(values.min() for values in curves.values()))) / 10
    figure, (axes,) = panels(1, 2.4, x="what y⁺ leaves to the true class: 1 is a hard label", y="density")
    for place, (name, values) in enumerate(curves.items()):
        density, edges = np.histogram(values, bins=LABEL_BINS, range=(low, 1.0), density=True)
        style = look(place)
        axes.stairs(
            density,
            edges,
            label=name,
            fill=True,
            facecolor=(*to_rgb(style["color"]), 0.15),
            edgecolor=style["color"],
            linestyle=style["linestyle"],
            linewidth=1.4,
            hatch=HATCHES[place % len(HATCHES)],
        )
    axes.set_xlim(low, 1)
    legend_above(figure)
    return figure


def carried(moment: Snapshot) -> float:
    """The mean of ‖z⁺ − z‖, by the root mean square distance of z from its centre."""
    z = moment.arrays["embedding"].astype(np.float64)
    z_plus = moment.arrays["perturbed_embedding"].astype(np.float64)
    spread = np.sqrt(np.square(z - z.mean(0)).sum(1).mean())
    return float(np.linalg.norm(z_plus - z, axis=1).mean() / max(spread, 1e-12))


def of_true_class(moment: Snapshot) -> FloatArray:
    """What each mixed label leaves to the true class; for segmentation, the largest of its means."""
    mixed, labels = moment.arrays["mixed_labels"], moment.arrays["labels"]
    if not len(labels):
        return np.asarray(mixed.max(1))
    truth = np.tile(labels, len(mixed) // len(labels))
    return np.asarray(mixed[np.arange(len(mixed)), truth])


def _keeps(run: RunRecords, arrays: Sequence[str]) -> bool:
    moments = run.snapshots()
    return bool(moments) and all(name in moment.arrays for moment in moments for name in arrays)


def _with_snapshots(runs: Sequence[RunRecords], benchmark: str, *arrays: str) -> list[tuple[str, list[Snapshot]]]:
    """The titles of groups of runs that kept these arrays of moments of their training; without uncertainty first.

    Of two groups, one without uncertainty, that is the title of each.
    """
    groups = [group for group in contenders_of(runs, benchmark) if _keeps(group.runs[0], arrays)]
    if not groups:
        raise Missing("no run kept moments of its training: that is uncertain-sdg, trained with a run folder")
    groups.sort(key=lambda group: bool(group.manifest.settings.get("uncertainty", True)))
    titles = [group.title for group in groups]
    if [group.manifest.settings.get("uncertainty") for group in groups] == [False, True]:
        titles = ["without uncertainty", "with uncertainty"]
    return [(title, group.runs[0].snapshots()) for title, group in zip(titles, groups, strict=True)]
