"""Digits drawn with fonts: bright numbers on plain paper, and house numbers as a street camera sees them.

`syn_rendered` and `svhn_style` give a dict of arrays: `images` (n, 32, 32, 3) in bytes, `labels`, and what
each image was made of. The same `Generator` state gives the same bytes.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from onedomain.data.generated.cache import Arrays
from onedomain.data.image_files import through_jpeg

SIZE = 32  # pixels of a finished image, on each side
LUMA = np.array([0.299, 0.587, 0.114])  # how bright an RGB colour looks
MIN_CONTRAST = 80.0  # least difference in brightness of ink and paper in `syn_rendered`, of 255

# Of the fonts in matplotlib's wheel, those with upright figures (cmmi10 has old-style ones).
FONTS = (
    "DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSansMono.ttf",
    "DejaVuSansMono-BoldOblique.ttf", "DejaVuSerif.ttf", "DejaVuSerif-BoldItalic.ttf",
    "STIXGeneral.ttf", "STIXGeneralBol.ttf", "STIXGeneralItalic.ttf",
    "cmr10.ttf", "cmb10.ttf", "cmss10.ttf", "cmtt10.ttf", "cmti10.ttf",
)  # fmt: skip
# House numbers are bold and plain.
HOUSE_FONTS = (
    "DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSerif-Bold.ttf",
    "STIXGeneralBol.ttf", "cmb10.ttf", "cmss10.ttf",
)  # fmt: skip

_OVERSAMPLING = 2  # masks are drawn at twice the size and averaged, against jagged edges
_EM = 64  # font size on the canvas: near the oversampled size, so the warp loses nothing
_CANVAS = (384, 128)


class Pose(NamedTuple):
    """How a number stands in the frame. Lengths are pixels of the finished image."""

    height: float  # of the digit, unless it must shrink to fit
    aspect: float  # below 1: condensed
    angle: float  # radians
    shear: float
    tilt: tuple[float, float]  # perspective: change of depth per pixel, sideways and downwards
    shift: tuple[float, float]  # from the centre, cut off where the digit would leave the frame
    spacing: float  # between the centres of the digit and a neighbour: 16 and more has the frame cut it


@functools.cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    import matplotlib

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", name)
    # The basic layout is in each Pillow; the other depends on what else the machine has installed.
    return ImageFont.truetype(str(path), _EM, layout_engine=ImageFont.Layout.BASIC)


def number_mask(digit: str, neighbours: tuple[str, str], face: str, pose: Pose, stroke: int = 0) -> np.ndarray:
    """The cover of a number, (32, 32) bytes: `digit` whole in the frame, its `neighbours` beside it.

    `face` is a file of `FONTS`, a neighbour "" is none, and `stroke` thickens the figures, for an outline.
    """
    font = _font(face)
    left, top, right, bottom = font.getbbox(digit, anchor="ls")
    scale = pose.height / (bottom - top)
    linear = (
        np.array([[np.cos(pose.angle), -np.sin(pose.angle)], [np.sin(pose.angle), np.cos(pose.angle)]])
        @ np.array([[1.0, pose.shear], [0.0, 1.0]])
        @ np.diag([scale * pose.aspect, scale])
    )
    # Canvas → frame, both around the middle of the digit.
    forward = np.eye(3)
    forward[:2, :2] = linear
    forward[2, :2] = np.array(pose.tilt) @ linear
    half = np.array([right - left, bottom - top]) / 2
    corners = np.c_[half * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]), np.ones(4)] @ forward.T
    corners = corners[:, :2] / corners[:, 2:]
    # One pixel to the edge stays free: an outline or a blur must not be cut either.
    room = SIZE / 2 - 1
    shrink = min(1.0, float((2 * room / np.ptp(corners, axis=0)).min()))
    forward = np.diag([shrink, shrink, 1.0]) @ forward
    corners = corners * shrink
    shift = np.clip(pose.shift, -room - corners.min(axis=0), room - corners.max(axis=0))

    canvas = Image.new("L", _CANVAS)
    draw = ImageDraw.Draw(canvas)
    middle = np.array(_CANVAS) / 2
    baseline = middle[1] - (top + bottom) / 2
    for side, text in ((0, digit), (-1, neighbours[0]), (1, neighbours[1])):
        if not text:
            continue
        first, _, last, _ = font.getbbox(text, anchor="ls")
        touching = half[0] + (last - first) / 2 + 0.08 * _EM
        distance = max(pose.spacing / (scale * shrink * pose.aspect), touching)
        x = middle[0] + side * distance - (first + last) / 2
        draw.text((x, baseline), text, fill=255, font=font, anchor="ls", stroke_width=stroke)

    to_frame = np.diag([_OVERSAMPLING, _OVERSAMPLING, 1.0]) @ _translation(SIZE / 2 + shift) @ forward
    back = _translation(middle) @ np.linalg.inv(to_frame)
    back /= back[2, 2]
    side_length = SIZE * _OVERSAMPLING
    warped = canvas.transform(
        (side_length, side_length),
        Image.Transform.PERSPECTIVE,
        tuple(back.ravel()[:8].tolist()),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(warped.reduce(_OVERSAMPLING))


def syn_rendered(count: int, rng: np.random.Generator) -> Arrays:
    """Numbers in many fonts and bright colours on plain paper, as in SYN Numbers.

    `font` is an index into `FONTS`; `ink` and `paper` are RGB.
    """
    labels, neighbours = _texts(count, rng, alone=0.5)
    font = rng.integers(len(FONTS), size=count)
    poses = [
        Pose(
            height=rng.uniform(17, 26),
            aspect=rng.uniform(0.75, 1.15),
            angle=np.deg2rad(rng.uniform(-18, 18)),
            shear=rng.uniform(-0.15, 0.15),
            tilt=(0.0, 0.0),
            shift=(rng.uniform(-2, 2), rng.uniform(-3, 3)),
            spacing=rng.uniform(16, 20),
        )
        for _ in range(count)
    ]
    ink, paper = _contrasting_colours(count, rng)
    outlined = rng.random(count) < 0.3
    outline = rng.uniform(0, 255, (count, 3))

    numbers = [(str(labels[i]), neighbours[i], FONTS[font[i]], poses[i]) for i in range(count)]
    inner = np.stack([number_mask(*number) for number in numbers])
    outer = np.zeros_like(inner)
    for i in np.flatnonzero(outlined):
        outer[i] = number_mask(*numbers[i], stroke=3)

    # A slope of light over the paper, too small to take the contrast away.
    image = paper[:, None, None] + 15 * _slopes(count, rng)
    image = _over(image, outline, outer)
    image = _over(image, ink, inner)
    image = _blurred(image, rng.uniform(0.0, 0.9, count))
    image += rng.normal(0, 1, image.shape) * rng.uniform(0, 8, (count, 1, 1, 1))
    return {
        "images": _to_bytes(image),
        "labels": labels,
        "font": font,
        "ink": _to_bytes(ink),
        "paper": _to_bytes(paper),
    }


def svhn_style(count: int, photos: np.ndarray, rng: np.random.Generator) -> Arrays:
    """House numbers as a street camera sees them: on a wall, at an angle, faint, shaded, compressed.

    `font` is an index into `HOUSE_FONTS`.
    """
    labels, neighbours = _texts(count, rng, alone=0.3)
    font = rng.integers(len(HOUSE_FONTS), size=count)
    poses = [
        Pose(
            height=rng.uniform(20, 28),
            aspect=rng.uniform(0.6, 0.9),
            angle=np.deg2rad(rng.uniform(-8, 8)),
            shear=rng.uniform(-0.2, 0.2),
            tilt=(rng.uniform(-0.012, 0.012), rng.uniform(-0.006, 0.006)),
            shift=(rng.uniform(-1.5, 1.5), rng.uniform(-2, 2)),
            spacing=rng.uniform(15, 19),
        )
        for _ in range(count)
    ]
    mask = np.stack([number_mask(str(labels[i]), neighbours[i], HOUSE_FONTS[font[i]], poses[i]) for i in range(count)])

    wall = _walls(count, photos, rng)
    mean = wall.mean(axis=(1, 2))
    # Ink is lighter or darker than the wall, by little, and to the side where there is room for it.
    step = rng.uniform(55, 110, count)
    brightness = mean @ LUMA
    up = np.where(brightness < 90, True, np.where(brightness > 165, False, rng.random(count) < 0.5))
    ink = mean + np.where(up, step, -step)[:, None] + rng.normal(0, 8, (count, 3))

    # A mounted figure throws a shadow on the wall.
    depth = rng.uniform(0, 0.4, (count, 1, 1, 1))
    cast = np.roll(mask, 1, axis=(1, 2))
    image = wall * (1 - depth * cast[..., None] / 255.0)
    image = _over(image, ink, mask)
    # The shade of a tree or a porch: a soft edge somewhere across the picture.
    edge = 1 / (1 + np.exp(-8 * (_slopes(count, rng) - rng.uniform(-0.6, 0.6, (count, 1, 1, 1)))))
    image *= 1 - rng.uniform(0, 0.4, (count, 1, 1, 1)) * edge
    image = _blurred(image, rng.uniform(0.3, 1.1, count))
    image += rng.normal(0, 1, image.shape) * rng.uniform(2, 9, (count, 1, 1, 1))
    images = _to_bytes(image)
    quality = rng.integers(35, 80, size=count)
    images = np.stack([through_jpeg(picture, int(q)) for picture, q in zip(images, quality, strict=True)])
    return {"images": images, "labels": labels, "font": font}


def _texts(count: int, rng: np.random.Generator, alone: float) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Labels, each digit equally often, and the neighbours: none on a side with probability `alone`."""
    labels = rng.permutation(np.arange(count) % 10).astype(np.int64)
    others = np.where(rng.random((count, 2)) < alone, "", rng.integers(10, size=(count, 2)).astype(str))
    return labels, [(str(before), str(after)) for before, after in others]


def _contrasting_colours(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of RGB colours at least `MIN_CONTRAST` apart in brightness."""
    pairs = rng.uniform(0, 255, (count, 2, 3))
    while len(close := np.flatnonzero(np.abs((pairs[:, 0] - pairs[:, 1]) @ LUMA) < MIN_CONTRAST + 1)):
        pairs[close] = rng.uniform(0, 255, (len(close), 2, 3))
    return pairs[:, 0], pairs[:, 1]


def _walls(count: int, photos: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Crops of photographs at several scales, with less contrast and colour, and a slope of light."""
    pictures = [Image.fromarray(photo) for photo in photos]
    width, height = pictures[0].size
    cut = []
    for _ in range(count):
        side = rng.integers(SIZE, 5 * SIZE)
        left, top = rng.integers(width - side), rng.integers(height - side)
        box = (int(left), int(top), int(left + side), int(top + side))
        picture = pictures[rng.integers(len(pictures))]
        cut.append(np.asarray(picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)))
    crop = np.stack(cut).astype(float)
    crop = (crop + (crop @ LUMA)[..., None]) / 2
    crop -= crop.mean(axis=(1, 2), keepdims=True)
    # So little texture that the edges of a photograph are not stronger than those of a figure.
    texture = rng.uniform(4, 16, (count, 1, 1, 1)) / np.maximum(crop.std(axis=(1, 2, 3), keepdims=True), 1)
    base = rng.uniform(60, 205, (count, 1, 1, 1)) + rng.normal(0, 9, (count, 1, 1, 3))
    return base + np.minimum(texture, 1) * crop + 18 * _slopes(count, rng)


def _slopes(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 32, 32, 1): planes from −1 to 1 in random directions."""
    angle = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    line = np.linspace(-1, 1, SIZE)
    plane = np.cos(angle) * line[None, None, :] + np.sin(angle) * line[None, :, None]
    return (plane / np.abs(plane).max(axis=(1, 2), keepdims=True))[..., None]


def _over(image: np.ndarray, colour: np.ndarray, mask: np.ndarray) -> np.ndarray:
    cover = mask[..., None] / 255.0
    return image * (1 - cover) + colour[:, None, None] * cover


def _blurred(image: np.ndarray, radius: np.ndarray) -> np.ndarray:
    filters = [ImageFilter.GaussianBlur(float(r)) for r in radius]
    pictures = zip(_to_bytes(image), filters, strict=True)
    return np.stack([np.asarray(Image.fromarray(one).filter(f)) for one, f in pictures]).astype(float)


def _to_bytes(image: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def _translation(offset: np.ndarray) -> np.ndarray:
    matrix = np.eye(3)
    matrix[:2, 2] = offset
    return matrix
