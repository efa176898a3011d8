"""How figures look: legible in black and white, by the colour-blind, on a phone (360 px wide) and in print."""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from onedomain.data.files import make_folder, write_atomically
from onedomain.reporting.contenders import Contender
from onedomain.reporting.table import shortened

WIDTH = 4.8  # inches: on a phone it shrinks to 0.78 of that, and letters of 9 points stay legible
PNG_DPI = 200

# Okabe and Ito's colours; neighbours differ in marker, line and filling as well, so that none rests on colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 3)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")
SOURCE, AUGMENTED, UNSEEN = "#0072B2", "#D55E00", "#8A8A8A"

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "figure.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.0,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # letters stay letters: small files that can be searched and read aloud
}

P = ParamSpec("P")
T = TypeVar("T")


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Run a function in this style; matplotlib's own settings are as before afterwards."""

    @wraps(draw)
    def in_style(*arguments: P.args, **options: P.kwargs) -> T:
        with mpl.rc_context(), warnings.catch_warnings():
            # Of letters that the font lacks, which a browser has, and of room: nothing that a user can change.
            warnings.simplefilter("ignore", UserWarning)
            mpl.rcdefaults()  # a user's matplotlibrc does not change a report
            mpl.rcParams.update(STYLE)
            return draw(*arguments, **options)

    return in_style


def look(place: int) -> dict[str, Any]:
    """Colour, marker, filling and line of the n-th of several things."""
    colour = COLOURS[place % len(COLOURS)]
    return {
        "color": colour,
        "marker": MARKERS[place % len(MARKERS)],
        "markerfacecolor": colour if place % 2 == 0 else "white",
        "linestyle": LINES[place % len(LINES)],
    }


def panels(
    count: int,
    height: float,
    columns: int = 2,
    *,
    extra: float = 0.3,
    width: float = WIDTH,
    legend: Sequence[str] = (),
    x: str = "",
    y: str = "",
    percents: str = "",
    **options: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, each `height` inches high, in rows of `columns`.

    `extra` are the inches beside them, without those of the `legend`; x and y are what all panels show, and `percents`
    says which of both are shares.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    room = 0.1 + 0.18 * math.ceil(len(legend) / legend_columns(legend)) if legend else 0.0
    figure = Figure(figsize=(width, rows * height + extra + room), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [axes for row in figure.subplots(rows, columns, squeeze=False, **options) for axes in row]
    for spare in axes[count:]:
        spare.remove()
    figure.supxlabel(x)
    figure.supylabel(y)
    for each in axes[:count]:
        for axis in percents:
            getattr(each, f"{axis}axis").set_major_formatter(percent)
    return figure, axes[:count]


def show_image(axes: Axes, pixels: np.ndarray) -> None:
    """Bytes as colours or greys, each pixel as a square."""
    axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="none")
    without_axes(axes)


def without_axes(axes: Axes) -> None:
    """For panels whose directions mean nothing, such as t-SNE's, and for images."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def wrapped(text: str, width: int = 30, lines: int = 3, hyphens: bool = False) -> str:
    """A text in lines of so many letters; by default a title not wider than half the figure.

    >>> wrapped("uncertain-sdg, uncertainty=false"), wrapped("new-york-dawn", 10, hyphens=True)
    ('uncertain-sdg,\\nuncertainty=false', 'new-york-\\ndawn')
    """
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=hyphens, max_lines=lines, placeholder="…"))


def legend_columns(labels: Sequence[str]) -> int:
    widest = 37 + 4.9 * max(map(len, labels))  # points: the handle and the text
    return max(1, min(len(labels), int(72 * WIDTH // widest)))


def legend_above(figure: Figure, order: Sequence[str] = ()) -> None:
    """One legend of all that the panels name, in as many columns as fit; what is in `order` comes first."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    names = [*(name for name in order if name in found), *(name for name in found if name not in order)]
    labels = [shortened(name, 60) for name in names]
    options = {"ncols": legend_columns(names), "columnspacing": 1.2, "handlelength": 2.4}
    figure.legend([found[name] for name in names], labels, loc="outside upper center", **options)


def mean_line(axes: Axes, x: Sequence[float], values: Sequence[Sequence[float]], place: int, label: str = "") -> None:
    """The means, as the n-th of several lines; whiskers are one deviation, where there are several values."""
    spread = [stdev(each) if len(each) > 1 else math.nan for each in values]
    whiskers = None if all(map(math.isnan, spread)) else spread
    axes.errorbar(x, list(map(fmean, values)), yerr=whiskers, capsize=3, elinewidth=1.0, label=label, **look(place))


@styled
def remark_below(figure: Figure, text: str) -> None:
    """Lines below all panels, and the room for them."""
    width, height = figure.get_size_inches()
    lines = wrapped(text, 70)
    figure.set_size_inches(width, height + 0.16 * len(lines.splitlines()))
    label = figure.get_supxlabel()
    figure.supxlabel(f"{label}\n{lines}" if label else lines)


def named_first(groups: Sequence[Contender], most: int) -> list[Contender]:
    """So many that can be shown, in the order given: in any case SDG, and ERM, with which all is compared."""
    by_need = sorted(groups, key=lambda group: group.manifest.method not in ("sdg", "erm"))
    return [group for group in groups if group in by_need[:most]]


def percent(value: float, _place: float = 0) -> str:
    """A tick's text.

    >>> percent(0.5), percent(0.0125)
    ('50%', '1.25%')
    """
    return f"{100 * value:.4g}%"


def _settle(figure: Figure) -> None:
    """Let the layout find its place once: it would move a little with every drawing."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


@styled
def svg(figure: Figure) -> str:
    """The figure as an `<svg>` element to put into a page: the same figure always gives the same text."""
    _settle(figure)
    mpl.rcParams["svg.hashsalt"] = f"onedomain {figure.get_label()}"  # figures of one page share no ids
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    content = text.getvalue()
    content = content[content.index("<svg") :]
    content = re.sub(r"<metadata>.*?</metadata>\s*", "", content, flags=re.DOTALL)
    return re.sub(r'<g id="[\w.]+_\d+"', "<g", content)  # matplotlib's counters would clash in a page


@styled
def png(figure: Figure) -> bytes:
    """The figure as a PNG file's content."""
    _settle(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=PNG_DPI, metadata={"Software": "onedomain"})
    return content.getvalue()


def save(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write `name`.svg and `name`.png into the folder."""
    make_folder(Path(folder))
    paths = Path(folder) / f"{name}.svg", Path(folder) / f"{name}.png"
    write_atomically(paths[0], f'<?xml version="1.0" encoding="utf-8"?>\n{svg(figure)}')
    write_atomically(paths[1], png(figure))
    return paths
