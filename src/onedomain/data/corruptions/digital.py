"""Digital: JPEG, pixelate, spatter, elastic transform, brightness, saturate, contrast (the paper's grouping)."""

from __future__ import annotations

import cv2
import numpy as np
from PIL import Image
from scipy import ndimage

from onedomain.data.corruptions.shared import (
    Bytes,
    Floats,
    Generators,
    as_bytes,
    as_unit,
    as_unit_single,
    drawn,
    smoothed,
)
from onedomain.data.image_files import through_jpeg

WATER = np.array((175, 238, 238), np.float32) / np.float32(255)  # pale turquoise
MUD = np.array((63, 42, 20), np.float32) / np.float32(255)  # brown


def jpeg_compression(images: Bytes, quality: int, rngs: Generators) -> Bytes:
    return np.stack([through_jpeg(image, quality) for image in images])


def pixelate(images: Bytes, share: float, rngs: Generators) -> Bytes:
    height, width = images.shape[1:3]
    small = (max(1, int(width * share)), max(1, int(height * share)))
    box = Image.Resampling.BOX
    return np.stack([np.asarray(Image.fromarray(i).resize(small, box).resize((width, height), box)) for i in images])


def contrast(images: Bytes, factor: float, rngs: Generators) -> Bytes:
    x = as_unit(images)
    mean = x.mean((1, 2), keepdims=True)
    return as_bytes((x - mean) * factor + mean)


def brightness(images: Bytes, added: float, rngs: Generators) -> Bytes:
    return _in_hsv(images, 2, 1.0, added)


def saturate(images: Bytes, constants: tuple[float, float], rngs: Generators) -> Bytes:
    return _in_hsv(images, 1, *constants)


def _in_hsv(images: Bytes, channel: int, factor: float, added: float) -> Bytes:
    from matplotlib.colors import hsv_to_rgb, rgb_to_hsv

    hsv = rgb_to_hsv(as_unit(images))
    hsv[..., channel] = np.clip(hsv[..., channel] * factor + added, 0, 1)
    return as_bytes(hsv_to_rgb(hsv))


def elastic_transform(images: Bytes, constants: tuple[float, float, float], rngs: Generators) -> Bytes:
    """An affine map of three points that move a little, then smooth random displacements."""
    length, smoothness, shift = constants
    height, width = images.shape[1:3]
    centre, reach = np.array((height // 2, width // 2), np.float32), min(height, width) // 3
    corners = np.array([centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach], np.float32)
    moves = drawn(rngs, lambda rng: rng.uniform(-shift, shift, corners.shape)).astype(np.float32)
    draws = drawn(rngs, lambda rng: rng.uniform(-1, 1, (2, height, width)))
    right, down = (
        (smoothed(draws[:, axis], smoothness, "reflect", truncate=3) * length).astype(np.float32) for axis in (0, 1)
    )
    rows, columns = np.mgrid[:height, :width]
    result = np.empty(images.shape, np.float32)
    for place, image in enumerate(as_unit_single(images)):
        affine = cv2.getAffineTransform(corners, corners + moves[place])
        warped = cv2.warpAffine(image, affine, (width, height), borderMode=cv2.BORDER_REFLECT_101)
        where = rows + down[place], columns + right[place]
        for channel in range(warped.shape[2]):
            plane = warped[..., channel]
            result[place, ..., channel] = ndimage.map_coordinates(plane, where, order=1, mode="reflect")
    return as_bytes(result)


def spatter(images: Bytes, constants: tuple[float, float, float, float, float, bool], rngs: Generators) -> Bytes:
    """Drops of water, which brighten, or of mud, which cover."""
    mean, deviation, smoothness, threshold, strength, mud = constants
    x = as_unit_single(images)
    liquid = smoothed(drawn(rngs, lambda rng: rng.normal(mean, deviation, images.shape[1:3])), smoothness)
    if mud:
        cover = smoothed((liquid > threshold).astype(np.float32), strength)
        cover = np.where(cover < 0.8, np.float32(0), cover)[..., None]
        return as_bytes(x * (1 - cover) + MUD * cover)
    drops = np.stack([_drops((layer * 255).astype(np.uint8)) for layer in np.where(liquid < threshold, 0, liquid)])
    return as_bytes(x + np.float32(strength) * drops[..., None] * WATER)


def _drops(liquid: Bytes) -> Floats:
    """Light on drops, from 0 to 1: brightest where the liquid is thick and its rim faces the lower right."""
    distance = cv2.distanceTransform(255 - cv2.Canny(liquid, 50, 150), cv2.DIST_L2, 5)
    _, distance = cv2.threshold(distance, 20, 20, cv2.THRESH_TRUNC)
    relief = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    relief = cv2.filter2D(relief, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32))
    light = liquid * cv2.blur(relief, (3, 3)).astype(np.float32)
    # The published script divides by 0 where no drop fell, and such an image becomes black; here it stays as it is.
    return light / max(float(light.max()), 1.0)
