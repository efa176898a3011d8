"""Domains in the embedding space, by t-SNE with convex hulls: do the made domains reach the unseen ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull, Delaunay, QhullError
from sklearn.manifold import TSNE

from onedomain.data.arrays import FloatArray
from onedomain.data.domain import IntArray
from onedomain.reporting.contenders import Contender, adapted_to, contenders_of
from onedomain.reporting.figures import style
from onedomain.reporting.figures.declare import Missing, figure
from onedomain.runs.records import RunRecords

MOST_POINTS = 200  # of the source, of augmented and of unseen domains
MOST_PANELS = 4
MOST_CLASSES = 20  # that have a hull each; more of them would cover everything
KEPT = 0.9  # of the points of a hull
FEWEST_POINTS = 10  # of a panel: t-SNE of fewer shows nothing

Array = TypeVar("Array", bound=np.ndarray)

HULLS = {"hulls of S": (style.SOURCE, "-"), "hulls of S ∪ S⁺": (style.AUGMENTED, (0, (4, 1.5)))}
NAMES = {"unseen": "unseen", "augmented": "augmented S⁺", "source": "source S"}
IN_LEGEND = (*reversed(NAMES.values()), *HULLS)  # what is drawn first is not what is named first
LOOKS: dict[str, dict[str, Any]] = {  # the last is drawn on top
    "unseen": {"marker": "x", "color": style.UNSEEN, "markersize": 2.6, "markeredgewidth": 0.6},
    "augmented": {"marker": "^", "color": style.AUGMENTED, "markersize": 2.8, "mfc": "none", "markeredgewidth": 0.5},
    "source": {"marker": "o", "color": style.SOURCE, "markersize": 2.0, "markeredgewidth": 0},
}


# The embeddings of one run by what their images are, source, augmented or unseen, and their classes if known.
Embedded = tuple[dict[str, FloatArray], dict[str, IntArray]]


@figure(
    "embedding",
    "Domains in the embedding space",
    "Images as the network sees them, similar ones near each other. Augmented domains that reach beyond the source "
    "towards the unseen ones prepare the network for these.",
    place=8,
)
def domains(runs: Sequence[RunRecords], benchmark: str) -> Figure:
    """A panel for each method; SDG without L_relax stands beside SDG with it."""
    groups = _in_order(contenders_of(runs, benchmark))
    shown = [(group, found) for group in groups if (found := _embedded(group, benchmark))][:MOST_PANELS]
    if not shown:
        raise Missing(
            "needs embeddings of the source and of unseen domains: a network whose embedding layer is named, scored on "
            f"both since answers are kept: {runs[0].evaluate_command(benchmark)}"
        )
    figure, axes = style.panels(len(shown), 2.9, extra=0.4)
    for (group, (kinds, labels)), panel in zip(shown, axes, strict=True):
        points = project(kinds)
        title = style.wrapped(group.title)
        if group.manifest.method == "sdg":
            title += f"\n{'with' if group.manifest.settings['beta'] > 0 else 'without'} L_relax"
        if "augmented" in points:
            covered = {name: inside(points["unseen"], each) for name, each in hulls(points, labels).items()}
            title += "\nunseen in hulls: " + ", with S⁺ ".join(f"{share:.0%}" for share in covered.values())
        panel.set_title(title)
        draw_points(panel, points, labels)
    style.legend_above(figure, IN_LEGEND)
    return figure


def draw_points(axes: Axes, points: Mapping[str, FloatArray], labels: Mapping[str, IntArray]) -> None:
    """Points by kind, and hulls of the source's classes without and with what was augmented."""
    for kind, look in LOOKS.items():
        if kind in points:
            axes.plot(*points[kind].T, linestyle="none", label=NAMES[kind], **look)
    for name, corners in hulls(points, labels).items():
        colour, line = HULLS[name]
        outline = np.concatenate([np.concatenate([each, each[:1], [[np.nan, np.nan]]]) for each in corners])
        axes.plot(*outline.T, color=colour, linestyle=line, linewidth=1.3, label=name)
    style.without_axes(axes)
    axes.set_aspect("equal", adjustable="datalim")


def hulls(points: Mapping[str, FloatArray], labels: Mapping[str, IntArray]) -> dict[str, list[FloatArray]]:
    """Convex hulls of the source, and of source and augmented together: one per class if these are known and few."""
    learned = [kind for kind in ("source", "augmented") if kind in points]
    classes = {kind: labels[kind] for kind in learned if kind in labels}
    if len(classes) < len(learned) or any(len(np.unique(each)) > MOST_CLASSES for each in classes.values()):
        classes = {kind: np.zeros(len(points[kind]), np.int64) for kind in learned}
    found: dict[str, list[FloatArray]] = {}
    for number, name in zip(range(1, len(learned) + 1), HULLS, strict=False):
        each_class: dict[int, list[FloatArray]] = {}
        for kind in learned[:number]:  # the core of each by itself: what is learned in addition makes no hull smaller
            for label in np.unique(classes[kind]):
                each_class.setdefault(int(label), []).append(core(points[kind][classes[kind] == label]))
        corners = [hull(np.concatenate(parts)) for _, parts in sorted(each_class.items())]
        found[name] = [each for each in corners if each is not None]
    return {name: each for name, each in found.items() if each}


def core(points: FloatArray) -> FloatArray:
    """Without the tenth that lies farthest out: a single image among those of another class would stretch a hull."""
    away = np.linalg.norm(points - np.median(points, 0), axis=1)
    kept: FloatArray = points[away <= np.quantile(away, KEPT)]
    return kept


def project(kinds: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """All embeddings together in two dimensions by t-SNE, the same each time; all in one place if they are equal."""
    every = np.concatenate([vectors.astype(np.float32) for vectors in kinds.values()])
    every -= every.mean(0)
    spread = float(every.std())
    flat = np.zeros((len(every), 2))
    if spread > 0:
        every = np.pad(every / spread, ((0, 0), (0, max(0, 2 - every.shape[1]))))
        perplexity = min(30.0, (len(every) - 1) / 3)
        flat = TSNE(init="pca", random_state=0, perplexity=perplexity).fit_transform(every)
    ends = np.cumsum([len(vectors) for vectors in kinds.values()])[:-1]
    return dict(zip(kinds, np.split(flat, ends), strict=True))


def hull(points: FloatArray) -> FloatArray | None:
    """The corners of the convex hull, in order around it; None of points that lie in a line."""
    try:
        corners: FloatArray = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return None
    return corners


def inside(points: FloatArray, corners: Sequence[FloatArray]) -> float:
    """The share of points that lie in at least one of the hulls."""
    found = np.zeros(len(points), bool)
    for each in corners:
        found |= Delaunay(each).find_simplex(points) >= 0
    return float(found.mean())


def _in_order(groups: Sequence[Contender]) -> list[Contender]:
    """SDG without and with L_relax first, then other methods that make domains, then the rest; variants come last."""

    def rank(group: Contender) -> tuple[bool, bool, bool, bool]:
        kind = (group.manifest.method, group.manifest.settings.get("beta", 0) > 0)
        variant = kind in seen
        seen.add(kind)
        makes = bool(group.runs[0].augmented() or group.runs[0].snapshots())
        return variant, group.manifest.method != "sdg", kind[1], not makes

    seen: set[tuple[str, bool]] = set()
    return sorted(groups, key=rank)


def _embedded(group: Contender, benchmark: str) -> Embedded | None:
    """Of the group's first run that has embeddings of its source and of unseen domains."""
    for run in group.runs:
        found: dict[str, list[tuple[FloatArray, IntArray | None]]] = {"source": [], "augmented": [], "unseen": []}
        for domain, outcome in run.outcomes(benchmark).items():
            if outcome.sample_embedding is not None and domain not in adapted_to(run):  # which is neither of the two
                classes = None if outcome.labels is None else outcome.labels[outcome.sample]
                found["unseen" if outcome.unseen else "source"].append((outcome.sample_embedding, classes))
        for sample in run.augmented():
            if sample.embedding is not None:
                classes = sample.labels if len(sample.labels) == len(sample.embedding) else None
                found["augmented"].append((sample.embedding, classes))
        if not found["augmented"] and run.snapshots():
            last = run.snapshots()[-1].arrays
            moved, classes = last.get("perturbed_embedding"), last.get("labels")
            if moved is not None:
                known = classes is not None and len(classes) == len(moved)
                found["augmented"].append((moved, classes if known else None))
        if found["source"] and found["unseen"]:
            kinds = {kind: _thinned([vectors for vectors, _ in parts]) for kind, parts in found.items() if parts}
            labels = {
                kind: _thinned([classes for _, classes in parts if classes is not None])
                for kind, parts in found.items()
                if parts and all(classes is not None for _, classes in parts)
            }
            if sum(map(len, kinds.values())) >= FEWEST_POINTS:
                return kinds, labels
    return None


def _thinned(parts: Sequence[Array]) -> Array:
    """As many of each part, and not too many together; samples are in random order already."""
    each = max(1, MOST_POINTS // len(parts))
    return np.concatenate([part[:each] for part in parts])  # type: ignore[return-value]
